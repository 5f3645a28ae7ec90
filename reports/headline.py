"""The result in one sentence, and the verdict in one word."""

from dataclasses import dataclass

from s2l.reports.bootstrap import Interval
from s2l.reports.gain import StreamingGain
from s2l.reports.summary import Summary
from s2l.reports.units import counted, duration, times


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence in three parts, of which ``figure`` is to stand out, and remarks on it."""

    lead: str
    figure: str
    tail: str
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.lead + self.figure + self.tail


def headline(summary: Summary) -> Headline:
    """The median streaming gain in plain words, or why there is none."""
    gain = summary.gain
    if gain is None:
        return _one_delivery(summary)
    remarks = _unpaired(gain)
    if gain.single is not None:
        tail = " for the only paired query. That is one measurement, not a median."
        return Headline("First token ", _faster(gain.single), tail, remarks)
    if gain.median is None:
        return Headline(
            "No streaming gain: ", "no query succeeded in both deliveries", ".", remarks
        )
    pairs = counted(gain.pairs, "paired query", "paired queries")
    tail = f" ({_interval(gain)}), at the median of {pairs}."
    return Headline("First token ", _faster(gain.median), tail, _doubt(gain.interval) + remarks)


def _one_delivery(summary: Summary) -> Headline:
    if not summary.deliveries:
        return Headline("", "No request was recorded", ".")
    one = summary.deliveries[0]
    ttft = one.latencies.ttft_s
    remark = ("A streaming gain needs both deliveries: replay with --delivery both.",)
    if ttft.p50 is None:
        return Headline("Delivery ", one.delivery, ": too few requests for a median.", remark)
    tail = f" at the median of {counted(ttft.n, 'request')}, delivery {one.delivery} only."
    return Headline("First token after ", duration(ttft.p50), tail, remark)


def _faster(gain: float) -> str:
    return f"{times(gain)} sooner" if gain >= 1 else f"{times(1 / gain)} later"


def _interval(gain: StreamingGain) -> str:
    if gain.interval is None or gain.median is None:
        return "too few pairs for an interval"
    ends = [gain.interval.low, gain.interval.high]
    if gain.median < 1:
        ends = [1 / end for end in reversed(ends)]
    return f"{gain.interval.coverage:.0%} interval {_bare(ends[0])} to {_bare(ends[1])}".replace(
        "%", " %"
    )


def _bare(ratio: float) -> str:
    return times(ratio).removesuffix("x")


def _doubt(interval: Interval | None) -> tuple[str, ...]:
    if interval is not None and interval.low <= 1 <= interval.high:
        return ("The interval includes 1: this run shows no difference.",)
    return ()


def _unpaired(gain: StreamingGain) -> tuple[str, ...]:
    if not gain.unpaired:
        return ()
    queries = counted(gain.unpaired, "query", "queries")
    was = "was" if gain.unpaired == 1 else "were"
    return (f"{queries} did not succeed in both deliveries and {was} left out of the gain.",)
