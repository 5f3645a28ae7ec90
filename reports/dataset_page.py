"""What datasets are like, side by side, as one HTML file with plots that needs nothing else."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from s2l.reports import palette
from s2l.reports.chart_style import Spec
from s2l.reports.dataset_chart import distribution_chart
from s2l.reports.standalone import policy, template, template_file, vega_bundle
from s2l.workloads.durable import write_durably
from s2l.workloads.plural import counted
from s2l.workloads.stats.dataset_stats import DatasetStats
from s2l.workloads.stats.stats_table import (
    COLUMNS,
    LABELS,
    StatsRow,
    distribution_rows,
    other_rows,
    unit_of,
)


@dataclass(frozen=True, slots=True)
class Section:
    """One quantity: its table, and its chart where there is something to draw."""

    key: str
    label: str
    unit: str
    rows: list[StatsRow]
    chart: Spec | None


def write_dataset_page(found: Sequence[DatasetStats], path: Path) -> None:
    """Write the page of these datasets, in the order given.

    Raises:
        ValueError: there are none.
        OSError: the file cannot be written.
    """
    if not found:
        raise ValueError("a page needs at least one dataset")
    write_durably(path, render_datasets(found).encode())


def render_datasets(found: Sequence[DatasetStats]) -> str:
    """The page's text."""
    named = _distinct(found)
    style = palette.stylesheet() + template_file("report.css")
    scripts = [vega_bundle(), template_file("report.js")]
    return template("dataset.html.j2").render(
        datasets=named,
        subtitle=", ".join(_size(one) for one in named),
        columns=COLUMNS,
        sections=[_section(named, key, label) for key, label in LABELS.items()],
        others=other_rows(named),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
    )


def _distinct(found: Sequence[DatasetStats]) -> list[DatasetStats]:
    """The same with names that tell them apart."""
    often = Counter(one.name for one in found)
    return [
        replace(one, name=f"{one.name} ({place})") if often[one.name] > 1 else one
        for place, one in enumerate(found, start=1)
    ]


def _size(one: DatasetStats) -> str:
    queries = counted(one.queries, "query", "queries")
    return f"{one.name}: {queries}, {counted(one.documents, 'document')}"


def _section(found: Sequence[DatasetStats], key: str, label: str) -> Section:
    unit = unit_of(found, key)
    chart = distribution_chart([(o.name, o.distributions[key]) for o in found], f"{label}, {unit}")
    return Section(key, label, unit, distribution_rows(found, key), chart)
