"""A small picture of a trace's shape: shares of values up to x, side by side."""

from typing import Any, Final

from s2l.workloads.sharing.shape import Shape
from s2l.workloads.stats.distribution import Distribution

_PANELS: Final = {
    "chunks_per_query": "chunks a query",
    "first_chunk_s": "first chunk after the query, s",
    "gap_s": "gap between arrivals, s",
    "duration_s": "duration of the retrieval, s",
}
_INK: Final = "#1f5f8b"
_LOG_FROM: Final = 50.0


def shape_svg(shape: Shape) -> str | None:
    """The picture as SVG; None where no value differs from another. Same shape, same bytes."""
    panels = [
        _panel(shape[name], title)
        for name, title in _PANELS.items()
        if name in shape and shape[name].n and shape[name].min != shape[name].max
    ]
    if not panels:
        return None
    import vl_convert

    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"view": {"stroke": None}, "axis": {"labelFontSize": 10, "titleFontSize": 11}},
        "hconcat": panels,
    }
    return str(vl_convert.vegalite_to_svg(spec))


def _panel(found: Distribution, title: str) -> dict[str, Any]:
    low, high = found.min or 0.0, found.max or 0.0
    logarithmic = low > 0 and high / low >= _LOG_FROM
    scale = {"type": "log"} if logarithmic else {"type": "linear", "zero": low >= 0}
    axis = {"tickCount": 4, "grid": False}
    values = [{"x": x, "share": share} for x, share in found.curve]
    return {
        "width": 190,
        "height": 130,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after", "color": _INK},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "title": title,
                "scale": scale,
                "axis": axis,
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "share up to x",
                "scale": {"domain": [0, 1]},
                "axis": {"format": "%", "tickCount": 4},
            },
        },
    }
