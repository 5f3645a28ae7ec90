"""A chart as it stands on a page."""

from dataclasses import dataclass

from s2l.reports.chart_style import Spec


@dataclass(frozen=True, slots=True)
class Figure:
    """A Vega-Lite specification with its words.

    ``key`` names it within its run (in saved files too), ``title`` is its heading or empty,
    ``description`` says what it shows to those who cannot see it.
    """

    key: str
    title: str
    description: str
    spec: Spec
    remarks: tuple[str, ...] = ()
