"""Several runs of the same workload at different rates, as one table of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.replayer.run import Run, RunError, RunInfo
from s2l.reports.gain import StreamingGain
from s2l.reports.moments import AT_THE_END
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

    Nothing where they differ in more than the rate, in their trace, their server or the moment of
    asking: a line between two workloads would mean nothing.
    """
    rated = [(name, offered_rate(one.info), one) for name, one in named]
    known = [(name, rate, one) for name, rate, one in rated if rate is not None]
    if len({_what_was_replayed(one) for _, _, one in known}) > 1:
        return RateSeries((), ())
    known.sort(key=lambda item: item[1])
    return RateSeries(
        points=tuple(point for name, rate, one in known for point in _points(name, rate, one)),
        gains=tuple(RateGain(n, r, one.gain) for n, r, one in known if one.gain is not None),
    )


def _what_was_replayed(summary: Summary) -> tuple[str, ...]:
    trace, target = summary.info.trace, summary.info.target
    asked_at = summary.asked_at or AT_THE_END
    return trace.sha256, target.adapter, target.server, target.model, asked_at


def offered_rate(info: RunInfo) -> float | None:
    """Queries per second that a run was to start, as its schedule or its options say."""
    for stated in (info.schedule, info.options):
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
        RunError: the sweep or one of its runs cannot be read or lies elsewhere, or it has no run.
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
    """The folder of a run. A sweep may come from anyone, and what it names is read and written to:
    only what lies in its own folder."""
    path, folder = sweep / name, sweep.resolve()
    if ".." in Path(name).parts or folder not in path.resolve().parents:
        where = "names a run outside of its folder"
        raise RunError(f"{sweep / SWEEP_FILE}: {where}: {name!r}; a sweep's runs lie in it")
    return path


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
