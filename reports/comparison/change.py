"""One figure in two runs, and how it changed."""

from dataclasses import dataclass
from typing import Final

from s2l.reports.bootstrap import Interval

RELATIVE: Final = "relative"
POINTS: Final = "points"
PLAIN: Final = "plain"
_RATE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Metric:
    """What a figure is. ``better`` is -1 where less is better, 1 where more is, 0 where neither.

    ``scale`` says how a change is given: ``relative`` to the base, in percentage ``points`` (the
    difference of two shares), or as the ``plain`` difference. A change of ``least`` or less is
    none: it is below what is shown, and for rates below what the last request does to a run's
    window. ``phrase`` names the metric within a sentence.
    """

    name: str
    title: str
    unit: str
    better: int
    scale: str
    phrase: str = ""
    least: float = 0.0005


METRICS: Final[dict[str, Metric]] = {
    one.name: one
    for one in (
        Metric("ttft_s", "TTFT", "s", -1, RELATIVE, "TTFT"),
        Metric("ttft_user_s", "TTFT, user", "s", -1, RELATIVE, "user TTFT"),
        Metric("tpot_s", "TPOT", "s", -1, RELATIVE, "TPOT"),
        Metric("e2e_s", "End to end", "s", -1, RELATIVE, "end-to-end time"),
        Metric("streaming_gain", "Streaming gain", "x", 1, RELATIVE, "streaming gain"),
        Metric("success", "Succeeded", "share", 1, POINTS, "share of successes"),
        Metric("attainment", "SLO attainment", "share", 1, POINTS, "SLO attainment"),
        Metric("goodput", "Goodput / s", "1/s", 1, RELATIVE, "goodput", _RATE),
        Metric("request_rate", "Requests / s", "1/s", 1, RELATIVE, "request rate", _RATE),
        Metric("output_token_rate", "Output tokens / s", "1/s", 1, RELATIVE, least=_RATE),
        Metric("total_token_rate", "All tokens / s", "1/s", 1, RELATIVE, least=_RATE),
        Metric("exact_match", "Exact match", "share", 1, POINTS, "exact match"),
        Metric("token_f1", "Token F1", "share", 1, POINTS, "token F1"),
        Metric(
            "contains_answer", "Contains the answer", "share", 1, POINTS, "containing the answer"
        ),
        Metric("semantic_similarity", "Similarity", "cosine", 1, PLAIN, "semantic similarity"),
        Metric("judge", "Judged correct", "share", 1, POINTS, "the judge's grades"),
        Metric("refusal", "Refusals", "share", 0, POINTS),
        Metric("parity", "Parity", "share", 1, POINTS, "parity of stream and wait"),
    )
}
"""All that is compared, in the order in which it is shown."""

LATENCIES: Final = ("ttft_s", "ttft_user_s", "tpot_s", "e2e_s")
QUALITY: Final = (
    *("exact_match", "token_f1", "contains_answer", "semantic_similarity", "judge"),
    *("refusal", "parity"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of the base and of the other run, over ``n`` pairs.

    ``level`` names the percentile (``p95``); None for a mean or a rate. ``change`` is relative to
    the base (0.05: 5 % more) or, for shares and cosines, the difference. ``interval`` is None where
    the sample cannot carry one.
    """

    metric: str
    level: str | None
    n: int
    base: float | None
    other: float | None
    change: float | None
    interval: Interval | None

    @property
    def name(self) -> str:
        """``ttft_s.p95``, ``token_f1``."""
        return self.metric if self.level is None else f"{self.metric}.{self.level}"

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``changed`` (where neither is better), ``none`` (the interval
        covers what counts as no change), or ``unknown`` (there is no interval)."""
        metric = METRICS[self.metric]
        if self.interval is None:
            return "unknown"
        if self.interval.low <= metric.least and self.interval.high >= -metric.least:
            return "none"
        if metric.better == 0:
            return "changed"
        return "better" if (self.interval.low > 0) == (metric.better > 0) else "worse"
