"""Which requests met their service level objectives, and how many of them a second."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.metrics import Booleans, Floats
from s2l.reports.slo import Slo

UNSENT: Final = "unsent"

PER_REQUEST: Final[Mapping[str, Callable[[pa.Table], Floats]]] = {
    "ttft_s": metrics.ttft_s,
    "ttft_service_s": metrics.ttft_service_s,
    "ttft_user_s": metrics.ttft_user_s,
    "ttft_answer_s": metrics.ttft_answer_s,
    "tpot_s": metrics.tpot_s,
    "e2e_s": metrics.e2e_s,
    "e2e_user_s": metrics.e2e_user_s,
}
"""Metrics with one value per request: what an objective can be about."""


@dataclass(frozen=True, slots=True)
class Attainment:
    """How the requests did against every objective at once.

    ``met`` requests of the ``sent`` ones; ``goodput`` is ``met`` per second of the measured window;
    ``attainment`` is ``met`` / ``sent``. ``slos`` are the limits that each request was held to, as
    text.
    """

    slos: tuple[str, ...]
    met: int
    sent: int
    goodput: float | None
    attainment: float | None

    @classmethod
    def of(cls, requests: pa.Table, slos: Sequence[Slo]) -> "Attainment | None":
        """Count them; None without an objective."""
        if not slos:
            return None
        met = int(meets(requests, slos).sum())
        sent = int(sent_mask(requests).sum())
        return cls(
            slos=tuple(f"{slo.metric} < {slo.limit_s:g} s" for slo in slos),
            met=met,
            sent=sent,
            goodput=metrics.ratio(met, metrics.completion_s(requests)),
            attainment=metrics.ratio(met, sent),
        )


def attainment(requests: pa.Table, slos: Sequence[Slo]) -> float | None:
    """Requests that meet every objective ÷ requests sent: a failure is one that does not."""
    met, sent = meets(requests, slos).sum(), sent_mask(requests).sum()
    return metrics.ratio(int(met), int(sent))


def meets(requests: pa.Table, slos: Sequence[Slo]) -> Booleans:
    """Whether each request succeeded with every value under its limit.

    A latency that is not there counts as too long; only ``tpot_s`` of an answer of one token or
    fewer does not exist, and is met.
    """
    found = np.asarray(pc.is_null(requests["error_type"]).to_numpy(), dtype=np.bool_)
    for slo in slos:
        values = PER_REQUEST[slo.metric](requests)
        if slo.metric == "tpot_s":
            values = np.where(metrics.column(requests, "output_tokens") <= 1, 0.0, values)
        found &= values < slo.limit_s
    return found


def sent_mask(requests: pa.Table) -> Booleans:
    """Whether each request was sent at all."""
    unsent = pc.fill_null(pc.equal(requests["error_type"], UNSENT), False)
    return ~np.asarray(unsent.to_numpy(), dtype=np.bool_)
