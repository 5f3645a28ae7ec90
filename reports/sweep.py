"""Several runs of the same workload at different rates, as one table of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.replayer.run import Run, RunError
from s2l.reports.gain import StreamingGain
from s2l.reports.percentiles import Distribution
from s2l.reports.summary import Summary

SWEEP_FILE: Final = "sweep.json"


@dataclass(frozen=True, slots=True)
class RatePoint:
    """One delivery at one offered rate. Latencies in seconds, rates per second.

    ``completed`` requests a second, and ``goodput`` those within the objectives; ``attainment`` is
    their share of what was sent. None where it is not known.
    """

    run: str
    rate_qps: float
    delivery: str
    verdict: str
    sent: int
    failed: int
    ttft_s: Distribution
    completed: float | None
    output_token_rate: float | None
    goodput: float | None
    attainment: float | None


@dataclass(frozen=True, slots=True)
class RateGain:
    """The streaming gain at one offered rate."""

    run: str
    rate_qps: float
    gain: StreamingGain


@dataclass(frozen=True, slots=True)
class RateSeries:
    """Points and gains of several runs, by rising rate."""

    points: tuple[RatePoint, ...]
    gains: tuple[RateGain, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        """The offered rates, each once."""
        return tuple(dict.fromkeys(point.rate_qps for point in self.points))


def rate_series(named: Sequence[tuple[str, Summary]]) -> RateSeries:
    """What the named runs have to say about rates; runs that state no rate are left out.

    Nothing where they differ in more than the rate, in their trace or their server: a line between
    two workloads would mean nothing.
    """
    known = [(name, rate, one) for name, one in named if (rate := offered_rate(one)) is not None]
    if len({_what_was_replayed(one) for _, _, one in known}) > 1:
        return RateSeries((), ())
    known.sort(key=lambda item: item[1])
    return RateSeries(
        points=tuple(point for name, rate, one in known for point in _points(name, rate, one)),
        gains=tuple(RateGain(n, r, one.gain) for n, r, one in known if one.gain is not None),
    )


def _what_was_replayed(summary: Summary) -> tuple[str, ...]:
    info = summary.info
    return info.trace.sha256, info.target.adapter, info.target.server, info.target.model


def offered_rate(summary: Summary) -> float | None:
    """Queries per second that the run was to start, as its schedule or its options say."""
    for stated in (summary.info.schedule, summary.info.options):
        rate = stated.get("rate_qps")
        if isinstance(rate, int | float) and rate > 0:
            return float(rate)
    return None


def is_sweep(path: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (path / SWEEP_FILE).is_file()


def sweep_runs(path: Path) -> list[Run]:
    """The runs of a sweep folder, in its order; points that were not measured have none.

    Raises:
        RunError: the sweep or one of its runs cannot be read, or it has no run.
    """
    file = path / SWEEP_FILE
    try:
        head = msgspec.json.decode(file.read_bytes())
        points = head["points"]
        names = [str(point["run"]) for point in points if point.get("run")]
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{file}: cannot be read as a sweep: {error!r}") from None
    if not names:
        raise RunError(f"{file}: no point of this sweep has a run")
    return [Run.open(_located(path, name)) for name in names]


def _located(sweep: Path, name: str) -> Path:
    """A run named by a path from the sweep's folder, or from where the sweep was made."""
    inside = sweep / name
    return inside if inside.is_dir() else Path(name)


def _points(name: str, rate: float, summary: Summary) -> list[RatePoint]:
    return [RatePoint(**_facts(name, rate, summary, one)) for one in summary.deliveries]


def _facts(name: str, rate: float, summary: Summary, one: Any) -> dict[str, Any]:
    return {
        "run": name,
        "rate_qps": rate,
        "delivery": one.delivery,
        "verdict": summary.info.validity.verdict,
        "sent": one.outcomes.sent,
        "failed": sum(one.outcomes.failed.values()),
        "ttft_s": one.latencies.ttft_s,
        "completed": one.throughput.request_rate,
        "output_token_rate": one.throughput.output_token_rate,
        "goodput": one.slo.goodput if one.slo else None,
        "attainment": one.slo.attainment if one.slo else None,
    }
