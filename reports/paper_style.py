"""The look and the size of figures for papers."""

import re
from typing import Final

import altair as alt

from s2l.reports.chart_style import Spec

WIDTH_MM: Final = 84.0
_PX_PER_MM: Final = 96 / 25.4
_HEIGHT_MM: Final = 52.0
_FONT_PX: Final = 8 * 96 / 72
"""8 points, as captions of papers have."""
_SIZE: Final = re.compile(r'\b(width|height)="([0-9.]+)"')

_CONFIG: Final[Spec] = {
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": _FONT_PX,
        "titleFontSize": _FONT_PX,
        "titleFontWeight": "normal",
        "labelColor": "#000000",
        "titleColor": "#000000",
        "gridColor": "#dddddd",
        "domainColor": "#000000",
        "tickColor": "#000000",
        "gridWidth": 0.5,
        "domainWidth": 0.5,
        "tickWidth": 0.5,
    },
    "legend": {
        "labelFontSize": _FONT_PX,
        "labelColor": "#000000",
        "orient": "top",
        "title": None,
        "offset": 4,
    },
}


def specification(chart: alt.Chart | alt.LayerChart | alt.FacetChart) -> Spec:
    """The chart in this look, one column wide with its axes and legend."""
    spec: Spec = chart.to_dict()
    size = {"width": WIDTH_MM * _PX_PER_MM, "height": _HEIGHT_MM * _PX_PER_MM}
    fit = {"autosize": {"type": "fit", "contains": "padding"}, "padding": 1}
    return spec | size | fit | {"background": "white", "config": _CONFIG}


def sized(svg: str, per_mm: float, unit: str) -> str:
    """The same picture with its size on paper in place of pixels; inside nothing changes."""

    def size(match: re.Match[str]) -> str:
        return f'{match[1]}="{float(match[2]) / _PX_PER_MM * per_mm:.3f}{unit}"'

    head, _, rest = svg.partition(">")
    return f"{re.sub(_SIZE, size, head)}>{rest}"
