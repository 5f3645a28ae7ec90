"""What happened when to one query, as a chart."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from s2l.reports import palette
from s2l.reports.chart_style import COLOURS, DELIVERIES, Spec, rows, specification
from s2l.reports.life import Life
from s2l.reports.units import duration

_PARTS: Final = ("prefill", "answer")
_EVENTS: Final = {
    "chunk arrives": "diamond",
    "sent": "M0,-1.5V1.5",
    "prefilled": "circle",
    "first token": "triangle-right",
    "last token": "square",
}


def timeline(lives: tuple[Life, ...]) -> Spec:
    """What happened when to one query, on one axis from the query's start.

    Args:
        lives: of the same query, one per delivery.
    """
    lanes = ["context", *(f"{life.delivery} {part}" for life in lives for part in _PARTS)]
    y = alt.Y("lane:N", sort=lanes, scale=alt.Scale(domain=lanes)).title(None)
    x = alt.X(
        "s:Q", scale=alt.Scale(nice=False, zero=True, padding=10), axis=alt.Axis(tickCount=10)
    )
    x = x.title("Time since the query, s")
    colour = alt.Scale(domain=["context", *DELIVERIES], range=[palette.INK, *COLOURS])
    due = [{"s": lives[0].due_s, "text": "context due"}]
    rule = alt.Chart(rows(due)).mark_rule(strokeDash=[3, 3], color=palette.MUTED)
    bars = alt.Chart(rows(_spans(lives))).mark_bar(opacity=0.32, height=11)
    points = alt.Chart(rows(_marks(lives))).mark_point(
        filled=True, size=70, strokeWidth=1.5, opacity=1
    )
    labels = alt.Chart(rows(_labels(lives))).mark_text(align="right", dx=-9, fontSize=12)
    side = alt.Color("side:N", scale=colour, legend=None)
    shown = [alt.Tooltip("lane:N"), alt.Tooltip("event:N"), alt.Tooltip("at:N", title="time")]
    chart = alt.layer(
        rule.encode(x=x),
        bars.encode(x=x, x2="end:Q", y=y, color=side, tooltip=shown),
        points.encode(
            x=x,
            y=y,
            color=side,
            stroke=alt.Stroke("side:N", scale=colour, legend=None),
            shape=_event_shapes(),
            tooltip=shown,
        ),
        labels.encode(x=x, y=y, text="text:N", color=side),
    )
    return specification(chart, 44 * len(lanes))


def _event_shapes() -> alt.Shape:
    scale = alt.Scale(domain=list(_EVENTS), range=list(_EVENTS.values()))
    legend = alt.Legend(title=None, symbolFillColor=palette.MUTED, symbolStrokeColor=palette.MUTED)
    return alt.Shape("event:N", scale=scale, legend=legend)


def _spans(lives: tuple[Life, ...]) -> list[dict[str, Any]]:
    spans = []
    for life in lives:
        sent = [(chunk.sent_s, chunk.prefilled_s) for chunk in life.chunks]
        answer = [(life.first_token_s, life.last_token_s)]
        for part, event, found in (
            ("prefill", "sent and not yet prefilled", merged(sent)),
            ("answer", "first to last token", merged(answer)),
        ):
            row = {"side": life.delivery, "lane": f"{life.delivery} {part}", "event": event}
            spans += [
                row | {"s": s, "end": end, "at": f"{s:.3f} to {end:.3f} s"} for s, end in found
            ]
    return spans


def merged(spans: Sequence[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    """The spans in order, those that touch joined into one; open ones are left out."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted((s, e) for s, e in spans if s is not None and e is not None):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _marks(lives: tuple[Life, ...]) -> list[dict[str, Any]]:
    marks = [_mark("context", "context", "chunk arrives", s) for s in lives[0].arrivals_s]
    for life in lives:
        prefill, answer = (f"{life.delivery} {part}" for part in _PARTS)
        for chunk in life.chunks:
            marks.append(_mark(life.delivery, prefill, "sent", chunk.sent_s))
            marks.append(_mark(life.delivery, prefill, "prefilled", chunk.prefilled_s))
        marks.append(_mark(life.delivery, answer, "first token", life.first_token_s))
        marks.append(_mark(life.delivery, answer, "last token", life.last_token_s))
    return [mark for mark in marks if mark["s"] is not None]


def _mark(side: str, lane: str, event: str, s: float | None) -> dict[str, Any]:
    return {"side": side, "lane": lane, "event": event, "s": s, "at": f"{s or 0:.3f} s"}


def _labels(lives: tuple[Life, ...]) -> list[dict[str, Any]]:
    return [
        {
            "side": life.delivery,
            "lane": f"{life.delivery} answer",
            "s": min(life.due_s, life.first_token_s),
            "text": f"TTFT {duration(life.ttft_s)}",
        }
        for life in lives
        if life.first_token_s is not None
    ]
