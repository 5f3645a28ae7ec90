"""The requests of one delivery as bars over time: retrieval, first token, answer."""

from typing import Any, Final

import altair as alt
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s2l.reports import metrics, palette
from s2l.reports.chart_style import COLOURS, DELIVERIES, Spec, rounded, rows, specification
from s2l.reports.units import duration

ROW_LIMIT: Final = 60
"""Requests in the chart at most."""
_SLOWEST: Final = 10
_FAILED: Final = 10

RETRIEVAL: Final = "retrieval"
WAITING: Final = "context due to first token"
ANSWER: Final = "answer"
FAILED: Final = "failed"


def gantt(
    requests: pa.Table, delivery: str, start_us: int, until_s: float
) -> tuple[Spec, int] | None:
    """The chart of one delivery's requests and how many are in it; None without any.

    Args:
        requests: of that delivery.
        delivery: for its colour.
        start_us: when its pass began.
        until_s: of the time axis: one for all deliveries, so that lengths can be compared.
    """
    if not requests.num_rows:
        return None
    chosen = chosen_rows(requests)
    spans = [
        span
        for row, request in enumerate(requests.take(pa.array(chosen)).to_pylist())
        for span in _spans(row, request, start_us)
    ]
    if not spans:
        return None
    colour = COLOURS[DELIVERIES.index(delivery)] if delivery in DELIVERIES else palette.MUTED
    kinds = [RETRIEVAL, WAITING, ANSWER, FAILED]
    present = [kind for kind in kinds if any(span["part"] == kind for span in spans)]
    fills = dict(zip(kinds, (palette.GRID, colour, palette.MUTED, palette.INK), strict=True))
    scale = alt.Scale(domain=present, range=[fills[kind] for kind in present])
    time = alt.Scale(domain=[0, rounded(until_s)], nice=False)
    bars = (
        alt.Chart(rows(spans))
        .mark_bar(clip=True, stroke=palette.MUTED, strokeWidth=0.5)
        .encode(
            x=alt.X("s:Q", scale=time, axis=alt.Axis(tickCount=6)).title(
                "Time since the pass began, s"
            ),
            x2="end:Q",
            y=alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0.25)),
            color=alt.Color("part:N", scale=scale, legend=alt.Legend(symbolType="square")),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("took:N"),
                alt.Tooltip("s:Q", title="from, s", format=",.2f"),
            ],
        )
    )
    return specification(alt.layer(bars), max(8 * chosen.size, 40)), int(chosen.size)


def chosen_rows(requests: pa.Table) -> npt.NDArray[np.intp]:
    """At most ``ROW_LIMIT`` rows by start: the slowest, some that failed, an even choice of all."""
    starts = metrics.column(requests, "start_intended_us")
    order = np.argsort(starts, kind="stable")
    if order.size <= ROW_LIMIT:
        return order
    ttft = np.nan_to_num(metrics.ttft_s(requests), nan=-np.inf)
    failed = np.flatnonzero(requests["error_type"].is_valid().to_numpy())
    slowest = np.argsort(ttft)[-_SLOWEST:]
    some_failed = (
        failed[np.linspace(0, failed.size - 1, _FAILED).astype(int)] if failed.size else []
    )
    even = order[np.linspace(0, order.size - 1, ROW_LIMIT - _SLOWEST - _FAILED).astype(int)]
    chosen = np.unique(np.r_[slowest, some_failed, even].astype(np.intp))
    return chosen[np.argsort(starts[chosen], kind="stable")]


def _spans(row: int, request: dict[str, Any], start_us: int) -> list[dict[str, Any]]:
    start, due = request["start_intended_us"], request["context_intended_us"]
    first, last, end = (request[f"{name}_us"] for name in ("first_token", "last_token", "end"))
    parts = [(RETRIEVAL, start, due)]
    if request["error_type"] is None:
        parts += [(WAITING, due, first), (ANSWER, first, last)]
    else:
        parts += [(FAILED, due, end)]
    return [
        {
            "row": row,
            "query": request["query_id"],
            "part": kind,
            "s": rounded((begins - start_us) / metrics.US_PER_S),
            "end": rounded((ends - start_us) / metrics.US_PER_S),
            "took": duration((ends - begins) / metrics.US_PER_S),
        }
        for kind, begins, ends in parts
        if begins is not None and ends is not None and ends > begins
    ]
