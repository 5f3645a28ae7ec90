"""Quality against the time that a person waits, a point for each moment of asking."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import altair as alt

from s2l.reports.answers import AnswerQuality
from s2l.reports.chart_style import (
    DELIVERIES,
    Spec,
    delivery_colour,
    rounded,
    rows,
    specification,
)
from s2l.reports.curve import CurvePoint
from s2l.reports.figure import Figure
from s2l.reports.units import duration

QUALITIES: Final = {
    "judge": "Judged correct",
    "semantic_similarity": "Semantic similarity",
    "token_f1": "Token F1",
    "contains_answer": "Contains the answer",
    "exact_match": "Exact match",
}
"""Scores of answers by the name of their metric, the most telling first."""

CHART_LIMIT: Final = 2


def quality_of(quality: AnswerQuality, name: str) -> float | None:
    """The mean of that name."""
    if name in quality.others:
        return quality.others[name]
    found: float | None = getattr(quality, name, None)
    return found


def curve_figures(points: Sequence[CurvePoint]) -> Iterator[Figure]:
    """A chart for each of the most telling scores that the run has."""
    drawn = 0
    for name, label in QUALITIES.items():
        values = [row for point in points if (row := _row(point, name)) is not None]
        if len(values) < 2 or drawn == CHART_LIMIT:
            continue
        drawn += 1
        description = f"{label} against median TTFT from the query, by moment of asking"
        yield Figure(f"curve-{name}", label, description, _chart(values, label))


def _chart(values: list[dict[str, Any]], label: str) -> Spec:
    present = [name for name in DELIVERIES if any(row["delivery"] == name for row in values)]
    colour = delivery_colour(alt.Legend(values=present))
    shapes = alt.Scale(domain=DELIVERIES, range=["circle", "square"])
    axis = alt.Axis(format="~%", tickCount=5)
    flat = len({row["quality"] for row in values}) == 1
    scale = alt.Scale(domain=[0, 1], padding=16) if flat else alt.Scale(zero=False, padding=16)
    base = alt.Chart(rows(values)).encode(
        x=alt.X("s:Q", scale=alt.Scale(zero=False, padding=24), axis=alt.Axis(tickCount=6)).title(
            "Median TTFT from the query, s"
        ),
        y=alt.Y("quality:Q", scale=scale, axis=axis).title(label),
        color=colour,
        tooltip=[
            alt.Tooltip("delivery:N"),
            alt.Tooltip("at:N", title="asked at"),
            alt.Tooltip("quality:Q", title=label, format=".1%"),
            alt.Tooltip("text:N", title="TTFT from the query"),
            alt.Tooltip("n:Q", title="answers"),
        ],
    )
    lines = base.mark_line(strokeWidth=1.5, clip=True).encode(order="nth:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(
        shape=alt.Shape("delivery:N", scale=shapes, legend=alt.Legend(values=present))
    )
    # One side of the line for each delivery: their points may lie beside each other.
    labels = [
        base.mark_text(dy=dy, fontSize=11)
        .encode(text="at:N")
        .transform_filter(alt.datum.delivery == name)
        for name, dy in zip(DELIVERIES, (-11, 14), strict=True)
    ]
    return specification(alt.layer(lines, dots, *labels), 240)


def _row(point: CurvePoint, name: str) -> dict[str, Any] | None:
    quality, ttft_s = quality_of(point.quality, name), point.ttft_user_s.p50
    if ttft_s is None and point.ttft_user_s.n == 1:
        ttft_s = point.ttft_user_s.min
    if quality is None or ttft_s is None:
        return None
    return {
        "delivery": point.delivery,
        "at": point.answer_at,
        "s": rounded(ttft_s),
        "nth": rounded(ttft_s),
        "quality": rounded(quality),
        "text": duration(ttft_s),
        "n": point.succeeded,
    }
