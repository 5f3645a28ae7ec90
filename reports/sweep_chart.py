"""Figures against the offered rate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import altair as alt

from s2l.reports import palette
from s2l.reports.chart_style import (
    DELIVERIES,
    NUMBER,
    Spec,
    delivery_colour,
    rounded,
    rows,
    specification,
)
from s2l.reports.figure import Figure
from s2l.reports.sweep import RateGain, RatePoint, RateSeries
from s2l.reports.units import number, times

_LINES: Final = [[1, 0], [6, 3], [2, 3]]
_LEVELS: Final = ("p50", "p95", "p99")


def sweep_figures(series: RateSeries) -> Iterator[Figure]:
    """TTFT percentiles, rates achieved, and the gain, where there is more than one rate."""
    if len(series.rates) < 2:
        return
    ttfts = [row for point in series.points for row in _ttft_rows(point)]
    if ttfts:
        chart = _lines(ttfts, "TTFT, s (log scale)", _LEVELS, log=True)
        yield Figure(
            "sweep-ttft", "TTFT", "TTFT percentiles against offered rate, by delivery", chart
        )
    for key, title, kinds in (
        ("sweep-rate", "Requests / s", {"completed": _completed, "goodput": _goodput}),
        ("sweep-tokens", "Output tokens / s", {"output tokens": _tokens}),
    ):
        values = [row for point in series.points for row in _rows(point, kinds)]
        if values:
            description = f"{title} against offered rate, by delivery"
            yield Figure(key, title, description, _lines(values, title, tuple(kinds)))
    if spec := _gain_chart(series.gains):
        yield Figure("sweep-gain", "Gain", "Median streaming gain against offered rate", spec)


def _completed(point: RatePoint) -> float | None:
    return point.completed


def _goodput(point: RatePoint) -> float | None:
    return point.goodput


def _tokens(point: RatePoint) -> float | None:
    return point.output_token_rate


def _ttft_rows(point: RatePoint) -> list[dict[str, Any]]:
    found = {level: point.ttft_s.level(level) for level in _LEVELS}
    return [
        _row(point, level, value)
        for level, value in found.items()
        if value is not None and value > 0
    ]


def _rows(
    point: RatePoint, kinds: Mapping[str, Callable[[RatePoint], float | None]]
) -> list[dict[str, Any]]:
    found = {kind: of(point) for kind, of in kinds.items()}
    return [_row(point, kind, value) for kind, value in found.items() if value is not None]


def _row(point: RatePoint, kind: str, value: float) -> dict[str, Any]:
    return {
        "rate": rounded(point.rate_qps),
        "delivery": point.delivery,
        "kind": kind,
        "value": rounded(value),
        "run": point.run,
    }


def _rate_axis(values: Sequence[Mapping[str, Any]]) -> alt.X:
    """Logarithmic, with a tick at each rate that was offered."""
    scale = alt.Scale(type="log", nice=False, padding=16)
    rates = sorted({row["rate"] for row in values})
    axis = alt.Axis(values=rates, format=NUMBER, labelOverlap="greedy")
    return alt.X("rate:Q", scale=scale, axis=axis).title("Offered rate, queries / s (log scale)")


def _lines(
    values: list[dict[str, Any]], title: str, kinds: Sequence[str], *, log: bool = False
) -> Spec:
    present = [name for name in DELIVERIES if any(row["delivery"] == name for row in values)]
    shown = [kind for kind in kinds if any(row["kind"] == kind for row in values)]
    scale = alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=True)
    axis = alt.Axis(format=NUMBER, tickCount=5, labelOverlap="greedy")
    long = alt.Legend(symbolType="stroke", symbolSize=500) if len(shown) > 1 else None
    dash = alt.Scale(domain=shown, range=_LINES[: len(shown)])
    base = alt.Chart(rows(values)).encode(
        x=_rate_axis(values),
        y=alt.Y("value:Q", scale=scale, axis=axis).title(title),
        color=delivery_colour(alt.Legend(values=present)),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("delivery:N"),
            alt.Tooltip("rate:Q", title="offered / s"),
            alt.Tooltip("kind:N", title="figure"),
            alt.Tooltip("value:Q", title=title, format=NUMBER),
        ],
    )
    shapes = alt.Scale(domain=DELIVERIES, range=["circle", "square"])
    lines = base.mark_line(strokeWidth=2, clip=True).encode(
        strokeDash=alt.StrokeDash("kind:N", scale=dash, legend=long)
    )
    dots = base.mark_point(filled=True, size=46, opacity=1, clip=True).encode(
        shape=alt.Shape("delivery:N", scale=shapes, legend=alt.Legend(values=present))
    )
    return specification(alt.layer(lines, dots), 240)


def _gain_chart(gains: Sequence[RateGain]) -> Spec | None:
    values = [_gain_row(one) for one in gains if one.gain.median is not None]
    if len(values) < 2:
        return None
    ends = [end for row in values for end in (row["low"], row["high"], 1.0)]
    scale = alt.Scale(type="log", nice=False, domain=[min(ends) / 1.1, max(ends) * 1.1])
    axis = alt.Axis(format=NUMBER, tickCount=5, labelOverlap="greedy")
    base = alt.Chart(rows(values)).encode(
        x=_rate_axis(values),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("rate:Q", title="offered / s"),
            alt.Tooltip("text:N", title="median gain"),
            alt.Tooltip("pairs:N"),
        ],
    )
    y = alt.Y("gain:Q", scale=scale, axis=axis).title("TTFT wait / stream, median (log scale)")
    line = base.mark_line(strokeWidth=2, color=palette.STREAM, clip=True).encode(y=y)
    dots = base.mark_point(filled=True, size=46, color=palette.STREAM, opacity=1, clip=True)
    spans = base.mark_rule(color=palette.STREAM, clip=True).encode(y=alt.Y("low:Q"), y2="high:Q")
    return specification(alt.layer(line, dots.encode(y=y), spans), 220)


def _gain_row(one: RateGain) -> dict[str, Any]:
    median, interval = one.gain.median or 0.0, one.gain.interval
    low, high = (interval.low, interval.high) if interval else (median, median)
    return {
        "run": one.run,
        "rate": rounded(one.rate_qps),
        "gain": rounded(median),
        "low": rounded(low),
        "high": rounded(high),
        "text": times(median),
        "pairs": number(one.gain.pairs),
    }
