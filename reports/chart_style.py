"""What all charts share: one look, rows as inline data, and how they are zoomed."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from s2l.reports import palette

Spec = dict[str, Any]
"""A Vega-Lite specification, ready for JSON."""

DELIVERIES: Final = ["stream", "wait"]
COLOURS: Final = [palette.STREAM, palette.WAIT]
DASHES: Final = [[1, 0], [6, 4]]

NUMBER: Final = ",~r"
"""Up to six digits, never with an exponent: ``~g`` would label an axis 4e+1."""

ZOOM: Final = "zoom"
"""The name of the selection that a chart's horizontal axis follows."""

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
        "labelSeparation": 8,
        "gridColor": palette.GRID,
        "domainColor": palette.GRID,
        "tickColor": palette.GRID,
    },
    "legend": _TEXT
    | {
        "orient": "top",
        "title": None,
        "symbolSize": 80,
        "labelLimit": 0,
        "layout": {"top": {"direction": "vertical"}},
    },
}


def rows(values: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart, kept inside its specification."""
    return alt.InlineData(values=values)


def rounded(value: float) -> float:
    """Six digits: what a chart can show, at half the size in the page."""
    return float(f"{value:.6g}")


def delivery_colour(legend: alt.Legend | None = None) -> alt.Color:
    """The deliveries' colours; without a legend unless one is given."""
    scale = alt.Scale(domain=DELIVERIES, range=COLOURS)
    return alt.Color("delivery:N", scale=scale, legend=legend)


def delivery_lines(present: Sequence[str]) -> dict[str, Any]:
    """Colour and dash of lines by delivery, with one legend for both."""
    legend = alt.Legend(values=list(present), symbolType="stroke", symbolSize=500)
    dash = alt.Scale(domain=DELIVERIES, range=DASHES)
    return {
        "color": delivery_colour(legend),
        "strokeDash": alt.StrokeDash("delivery:N", scale=dash, legend=legend),
    }


def specification(
    chart: alt.LayerChart | alt.FacetChart, height: int, *, zoom: bool = True
) -> Spec:
    """The chart in the common look, as wide as its place on the page and ``height`` px high.

    With ``zoom`` its horizontal axis, which must be of numbers, can be zoomed: with the wheel and
    Ctrl, moved with Shift, and by the page's buttons; a bare wheel scrolls the page.
    """
    spec: Spec = chart.to_dict()
    if zoom:
        spec["layer"][0].setdefault("params", []).append(_ZOOM_PARAMETER)
    fit = {"type": "fit-x", "contains": "padding"}
    size = {"width": "container", "height": height, "autosize": fit, "background": palette.PAPER}
    return spec | size | {"config": _CONFIG}


_ZOOM_PARAMETER: Final[Spec] = {
    "name": ZOOM,
    "bind": "scales",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey]",
        "translate": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
    },
}
