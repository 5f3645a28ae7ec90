"""What all charts share: one look, and rows as inline data."""

from typing import Any, Final

import altair as alt

from s2l.reports import palette

Spec = dict[str, Any]
"""A Vega-Lite specification, ready for JSON."""

DELIVERIES: Final = ["stream", "wait"]
COLOURS: Final = [palette.STREAM, palette.WAIT]

_TEXT: Final = {"labelColor": palette.INK, "titleColor": palette.MUTED, "labelFontSize": 12}
_CONFIG: Final[Spec] = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": _TEXT
    | {
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 6,
        "gridColor": palette.GRID,
        "domainColor": palette.GRID,
        "tickColor": palette.GRID,
    },
    "legend": _TEXT | {"orient": "top", "title": None, "symbolSize": 80},
}


def rows(values: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart, kept inside its specification."""
    return alt.InlineData(values=values)


def specification(chart: alt.LayerChart | alt.FacetChart, height: int) -> Spec:
    """The chart in the common look, as wide as its place on the page and ``height`` px high."""
    spec: Spec = chart.to_dict()
    fit = {"type": "fit-x", "contains": "padding"}
    size = {"width": "container", "height": height, "autosize": fit, "background": palette.PAPER}
    return spec | size | {"config": _CONFIG}
