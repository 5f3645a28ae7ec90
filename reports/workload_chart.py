"""How context arrived, as distributions."""

from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import palette
from s2l.reports.chart_style import NUMBER, Spec, rounded, rows, specification
from s2l.reports.figure import Figure
from s2l.reports.metrics import Floats, arrival_gaps_s, owners, retrieval_s
from s2l.reports.passes import of_delivery
from s2l.reports.run_data import RunData
from s2l.reports.thinning import thinned

_POINTS: Final = 200


def workload_figures(data: RunData, deliveries: list[str]) -> Iterator[Figure]:
    """Retrieval times, gaps between arrivals and chunks per query, of one delivery: the workload
    is the same for both."""
    if not deliveries:
        return
    mine = of_delivery(data.requests, deliveries[0])
    chosen = np.asarray(pc.equal(data.requests["delivery"], deliveries[0]).to_numpy())
    chunks = data.chunks.filter(pa.array(chosen[data.chunks["owner"].to_numpy()]))
    per_query = np.bincount(owners(chunks)).astype(np.float64)
    for key, title, values in (
        ("retrieval", "Time from query to context due, s", retrieval_s(mine)),
        ("arrival-gaps", "Gap between arrivals of context, s", arrival_gaps_s(chunks)),
        ("chunks-per-query", "Chunks of context per query", per_query[per_query > 0]),
    ):
        if spec := _cdf(values, title):
            heading = title.split(",")[0]
            yield Figure(key, heading, f"Share of values up to x: {title}", spec)


def _cdf(values: Floats, title: str) -> Spec | None:
    """Share of values up to x; None where they do not differ."""
    ordered = np.sort(values[~np.isnan(values)])
    if not ordered.size or ordered[0] == ordered[-1]:
        return None
    kept = thinned(ordered.size, _POINTS)
    points: list[dict[str, Any]] = [
        {"value": rounded(value), "share": rounded((rank + 1) / ordered.size)}
        for rank, value in zip(kept.tolist(), ordered[kept].tolist(), strict=True)
    ]
    axis = alt.Axis(format="~%", tickCount=5)
    line = (
        alt.Chart(rows(points))
        .mark_line(interpolate="step-after", strokeWidth=2, color=palette.INK, clip=True)
        .encode(
            x=alt.X("value:Q", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6)).title(title),
            y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis).title("Share up to x"),
            tooltip=[
                alt.Tooltip("value:Q", title=title, format=NUMBER),
                alt.Tooltip("share:Q", title="this much or less", format=".1%"),
            ],
        )
    )
    return specification(alt.layer(line), 160)
