"""A load generator that is measured, and what is measured of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from statistics import median

from point import Point

from s2l.workloads.arrivals.base import OffsetsUs

LIMIT_MS = 5.0
TPOT_MS = 10.0


@dataclass
class Figures:
    """One client at one rate. Lag is how late requests reached the mock, ``chunk_lag_p99_ms`` how
    late the client gave pieces of context and questions to their connections, by its own clock.
    ``mock_cpu`` is the mock's CPU, of a core: near 1 it is the mock that is measured.
    ``others_cpu`` is what other programs and the host took meanwhile of all cores, as a number of
    cores: far above 0 it is the machine that is measured."""

    rate_qps: float
    answered: int = 0
    asked: int = 0
    lag_p99_ms: float = float("nan")
    ttft_error_p99_ms: float = float("nan")
    chunk_lag_p99_ms: float | None = None
    cpu_s_per_1k: float = float("nan")
    start_s: float = float("nan")
    peak_mb: float = float("nan")
    achieved_qps: float = float("nan")
    mock_cpu: float = float("nan")
    others_cpu: float = float("nan")

    @property
    def honest(self) -> bool:
        """Whether what it reports at this rate can be believed."""
        late = (self.lag_p99_ms, self.ttft_error_p99_ms)
        return self.answered >= self.asked > 0 and all(ms < LIMIT_MS for ms in late)


@dataclass
class Client:
    """How a client is run and what it says of its requests: TTFT in ms by request, and, where it
    sends chunks, their lag. ``sent_after`` requests come after those that count. ``one_process``:
    its threads share one interpreter, and the main one does the sending. ``due_us``: when it means
    to send. ``searched``: rates beyond ``rates`` are tried, up to the highest honest one."""

    command: Callable[[Point], list[str]]
    read_ttft_ms: Callable[[Point], list[float]]
    rates: tuple[float, ...]
    prepare: Callable[[Point], None] = lambda _: None
    read_chunk_lag_ms: Callable[[Point], list[float]] | None = None
    sent_after: int = 0
    tpot_ms: float = TPOT_MS
    one_process: bool = True
    due_us: Callable[[Point], OffsetsUs] = Point.due_us
    searched: bool = False
    figures: list[Figures] = field(default_factory=list)


def median_of(points: list[Figures]) -> Figures:
    """The median of each figure; answers are those of the worst."""
    found = Figures(points[0].rate_qps)
    for one in fields(Figures)[1:]:
        values = [v for p in points if (v := getattr(p, one.name)) is not None]
        setattr(found, one.name, round(median(values), 3) if values else None)
    found.answered = min(p.answered for p in points)
    found.asked = points[0].asked
    return found
