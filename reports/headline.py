"""The result in one sentence, and the verdict in one word."""

from dataclasses import dataclass, replace

from s2l.reports.bootstrap import Interval
from s2l.reports.gain import StreamingGain
from s2l.reports.moments import moment_text
from s2l.reports.summary import Summary
from s2l.reports.units import duration, factor, times
from s2l.workloads.plural import counted


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
    found = _one_delivery(summary) if gain is None else gain_headline(gain)
    return replace(found, remarks=(*asked_early(summary.asked_at), *found.remarks))


def asked_early(moment: str | None) -> tuple[str, ...]:
    """What to say of figures of queries that were asked at a moment before the retrieval's end."""
    if moment is None:
        return ()
    when = moment_text(moment)
    return (f"Of queries asked {when}, the latest moment of this run: none waited for its end.",)


def gain_headline(gain: StreamingGain) -> Headline:
    """The gain of both deliveries in plain words."""
    remarks = _unpaired(gain)
    if gain.single is not None:
        tail = " for the only paired query. That is one measurement, not a median."
        return Headline("First token ", _sooner(gain.single), tail, remarks)
    if gain.median is None:
        return Headline(
            "No streaming gain: ", "no query succeeded in both deliveries", ".", remarks
        )
    pairs = _pairs(gain)
    if gain.interval is not None and gain.interval.low <= 1 <= gain.interval.high:
        found = f"{times(gain.median)} at the median of {pairs} ({_ends(gain.interval)}"
        tail = f" in the time to first token can be told: wait / stream {found}, which includes 1)."
        return Headline("", "No difference", tail, remarks)
    tail = f" ({_interval(gain)}), at the median of {pairs}."
    return Headline("First token ", _sooner(gain.median), tail, remarks)


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


def _pairs(gain: StreamingGain) -> str:
    """``40 paired queries``, or ``120 pairs of 40 queries`` where they were asked several times."""
    if gain.queries < gain.pairs:
        return f"{counted(gain.pairs, 'pair')} of {counted(gain.queries, 'query', 'queries')}"
    return counted(gain.pairs, "paired query", "paired queries")


def _sooner(gain: float) -> str:
    size = times(gain if gain >= 1 else 1 / gain)
    if size == times(1.0):
        return "as soon either way"
    return f"{size} {'sooner' if gain >= 1 else 'later'}"


def _interval(gain: StreamingGain) -> str:
    if gain.interval is None or gain.median is None:
        return "too few pairs for an interval"
    low, high = gain.interval.low, gain.interval.high
    if gain.median < 1:
        low, high = 1 / high, 1 / low
    return _ends(Interval(low, high, gain.interval.coverage))


def _ends(found: Interval) -> str:
    return f"{found.coverage * 100:.0f} % interval {factor(found.low)} to {factor(found.high)}"


def _unpaired(gain: StreamingGain) -> tuple[str, ...]:
    if not gain.unpaired:
        return ()
    pairs = counted(gain.unpaired, "more pair")
    was = "was" if gain.unpaired == 1 else "were"
    return (f"{pairs} did not succeed in both deliveries and {was} left out of the gain.",)
