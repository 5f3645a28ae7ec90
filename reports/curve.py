"""The quality-latency curve: what waiting for more context buys."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.answers import AnswerQuality
from s2l.reports.moments import asked_at, moments
from s2l.reports.percentiles import Distribution
from s2l.reports.run_data import RunData


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One delivery's requests that were asked at one moment of their retrieval.

    ``answer_at`` is a share of the retrieval (``25%``) or seconds from the query's start (``2s``).
    Latencies and quality are those of the successes; ``sent`` counts the failed ones too.
    """

    delivery: str
    answer_at: str
    sent: int
    succeeded: int
    ttft_user_s: Distribution
    ttft_s: Distribution
    quality: AnswerQuality


def quality_curve(data: RunData, deliveries: tuple[str, ...]) -> tuple[CurvePoint, ...]:
    """A point for each delivery and moment, earliest first; none where there is one moment."""
    asked, named = asked_at(data.requests), moments(data.requests)
    if len(named) < 2:
        return ()
    return tuple(
        _point(data, delivery, moment, mask)
        for delivery in deliveries
        for moment in named
        if (mask := _mask(data.requests, asked, delivery, moment)).any()
    )


def _mask(
    requests: pa.Table, asked: pa.ChunkedArray, delivery: str, moment: str
) -> metrics.Booleans:
    chosen = pc.and_(pc.equal(requests["delivery"], delivery), pc.equal(asked, moment))
    return np.asarray(chosen.to_numpy(), dtype=np.bool_)


def _point(data: RunData, delivery: str, moment: str, mask: metrics.Booleans) -> CurvePoint:
    mine = data.requests.filter(pa.array(mask))
    done = metrics.succeeded(mine)
    return CurvePoint(
        delivery=delivery,
        answer_at=moment,
        sent=mine.num_rows,
        succeeded=done.num_rows,
        ttft_user_s=Distribution.of(metrics.ttft_user_s(done)),
        ttft_s=Distribution.of(metrics.ttft_s(done)),
        quality=AnswerQuality.of({name: found[mask] for name, found in data.scores.items()}),
    )
