"""Where prompt tokens came from, and what was prefilled or generated in vain."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from s2l.reports import palette
from s2l.reports.chart_style import Spec, rows, specification
from s2l.reports.delivery import DeliverySummary, Throughput
from s2l.reports.units import number

REUSED: Final = "reused"
PREFILLED: Final = "left to prefill when due"
INVALIDATED: Final = "invalidated"
DISCARDED: Final = "discarded"
_KINDS: Final = [REUSED, PREFILLED, INVALIDATED, DISCARDED]
_FILLS: Final = [palette.GRID, palette.MUTED, palette.LOST, palette.INK]
"""None of them a delivery's: each bar has all of these parts."""


def token_chart(deliveries: Sequence[DeliverySummary]) -> Spec | None:
    """A bar for each delivery; None where no server said how many tokens it reused."""
    values = [row for one in deliveries for row in _parts(one.delivery, one.throughput)]
    if not values:
        return None
    present = [kind for kind in _KINDS if any(row["kind"] == kind for row in values)]
    names = [one.delivery for one in deliveries]
    scale = alt.Scale(domain=present, range=[_FILLS[_KINDS.index(kind)] for kind in present])
    axis = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5)
    bars = (
        alt.Chart(rows(values))
        .mark_bar(height=22, stroke=palette.MUTED, strokeWidth=0.5)
        .encode(
            x=alt.X("tokens:Q", stack="zero", axis=axis).title("Tokens, requests that succeeded"),
            y=alt.Y("delivery:N", scale=alt.Scale(domain=names)).title(None),
            color=alt.Color("kind:N", scale=scale, legend=alt.Legend(symbolType="square")),
            order=alt.Order("at:Q"),
            tooltip=[
                alt.Tooltip("delivery:N"),
                alt.Tooltip("kind:N"),
                alt.Tooltip("text:N", title="tokens"),
            ],
        )
    )
    return specification(alt.layer(bars), 46 * len(names), zoom=False)


def _parts(delivery: str, found: Throughput) -> list[dict[str, Any]]:
    if found.prompt_tokens is None or found.cached_tokens is None:
        return []
    parts = {
        REUSED: found.cached_tokens,
        PREFILLED: found.prompt_tokens - found.cached_tokens,
        INVALIDATED: found.invalidated_tokens,
        DISCARDED: found.discarded_tokens,
    }
    return [
        {"delivery": delivery, "kind": kind, "tokens": n, "text": number(n), "at": at}
        for at, (kind, n) in enumerate(parts.items())
        if n
    ]
