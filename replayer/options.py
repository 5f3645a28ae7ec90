"""What a replay can be told."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of ``s2l replay``.

    ``rate_qps`` is queries per second; None, with ``recorded`` arrivals, keeps the trace's own
    times. ``context_tokens`` cuts each query's context. ``timeout_s`` counts from when the
    context is due. ``order`` places the documents of a replaced context.
    """

    rate_qps: float | None
    arrivals: str = "poisson"
    delivery: str = "both"
    seed: int = 0
    time_scale: float = 1.0
    n_queries: int | None = None
    max_tokens: int = 64
    context_tokens: int | None = None
    order: str = "score"
    warmup: int = 2
    timeout_s: float = 300.0

    def as_dict(self) -> dict[str, Any]:
        """For ``run.json``."""
        return asdict(self) | {"temperature": 0.0}
