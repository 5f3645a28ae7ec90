"""Two runs side by side: every figure, its change, and an interval of the change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run
from s2l.reports import metrics
from s2l.reports.attainment import PER_REQUEST, meets, sent_mask
from s2l.reports.comparison.alignment import Aligned, Condition, align_runs
from s2l.reports.comparison.change import LATENCIES, QUALITY, Change
from s2l.reports.comparison.collector import Collector, Sides
from s2l.reports.comparison.comparable import TOKEN_TOLERANCE, check_comparable
from s2l.reports.comparison.side import Side
from s2l.reports.metrics import Booleans, Floats
from s2l.reports.moments import final_rows
from s2l.reports.pairs import Pairs
from s2l.reports.slo import Slo

SHOWN: Final = ("p50", "p95", "p99")
BOTH: Final = "stream and wait"
"""In the place of a delivery: what needs both deliveries of each run."""

_TOKEN_RATES: Final = {
    "output_token_rate": ("output_tokens",),
    "total_token_rate": ("prompt_tokens", "output_tokens"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """``slos`` are what each request has to meet, for goodput; ``seed`` is the bootstrap's;
    ``token_tolerance`` is by how much prompts may differ in tokens, as a share."""

    slos: tuple[Slo, ...] = ()
    seed: int = 0
    token_tolerance: float = TOKEN_TOLERANCE


@dataclass(frozen=True, slots=True)
class ConditionChanges:
    """All changes of one condition. ``pairs`` are planned in both runs, ``succeeded`` of them
    succeeded in both; ``identical`` of those have the same text in both runs."""

    condition: Condition
    pairs: int
    succeeded: int
    identical: int | None
    changes: tuple[Change, ...]

    def change(self, metric: str, level: str | None = None) -> Change | None:
        """One of them by name; None where it was not measured."""
        named = (one for one in self.changes if (one.metric, one.level) == (metric, level))
        return next(named, None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``other`` against ``base``, with remarks on what was left out or could not be checked."""

    base: Side
    other: Side
    conditions: tuple[ConditionChanges, ...]
    remarks: tuple[str, ...] = ()


def compare(base: Run, other: Run, options: Options | None = None) -> Comparison:
    """Compare two runs, paired by query.

    Raises:
        NotComparable: they did not do the same work.
        RunError: a table is missing or damaged.
    """
    return compare_sides(Side.of(base), Side.of(other), options or Options())


def compare_sides(base: Side, other: Side, options: Options) -> Comparison:
    """As ``compare``, of runs or sweeps that were read before."""
    aligned = align_runs(base.requests, other.requests)
    shared, remarks = check_comparable(base, other, aligned, options.token_tolerance)
    found = [_condition(one, options) for one in shared]
    sampled = any(side.info.options.get("temperature") for side in (base, other))
    across = align_runs(_paired(base.requests), _paired(other.requests))
    found += [_across(one, options, sampled=sampled) for one in across if len(one)]
    return Comparison(base, other, tuple(found), tuple(dict.fromkeys(remarks)))


def _condition(one: Aligned, options: Options) -> ConditionChanges:
    collected = Collector(one.query_codes, options.seed)
    both = _fine(one.base) & _fine(one.other)
    for name in LATENCIES:
        base, other = (np.where(both, PER_REQUEST[name](t), np.nan) for t in (one.base, one.other))
        collected.percentiles(name, (base, other), SHOWN)
    _rates(collected, one, options.slos)
    for name in QUALITY:
        if name in one.base.column_names and name in one.other.column_names:
            collected.mean(name, _columns(one, name))
    same = np.asarray(pc.equal(one.base["output_text"], one.other["output_text"])) & both
    return ConditionChanges(
        one.condition, len(one), int(both.sum()), int(same.sum()), collected.changes()
    )


def _rates(collected: Collector, one: Aligned, slos: Sequence[Slo]) -> None:
    """Shares of the pairs that both runs sent, where a failure counts against them, and rates over
    all planned pairs: what failed or was not sent adds nothing."""
    sent = sent_mask(one.base) & sent_mask(one.other)
    windows = metrics.completion_s(one.base), metrics.completion_s(one.other)
    done = _numbers(_fine(one.base)), _numbers(_fine(one.other))
    collected.mean("success", _where(sent, done))
    if slos:
        good = _numbers(meets(one.base, slos)), _numbers(meets(one.other, slos))
        collected.mean("attainment", _where(sent, good))
        collected.rate("goodput", good, windows)
    collected.rate("request_rate", done, windows)
    for name, columns in _TOKEN_RATES.items():
        collected.rate(name, (_tokens(one.base, columns), _tokens(one.other, columns)), windows)


def _where(mask: Booleans, sides: Sides) -> Sides:
    """The values of the pairs in ``mask``, NaN for the others."""
    base, other = (np.where(mask, side, np.nan) for side in sides)
    return base, other


def _tokens(requests: pa.Table, columns: Sequence[str]) -> Floats:
    """Tokens of the successes, 0 for failures; NaN where a success does not say."""
    total = np.sum([metrics.column(requests, name) for name in columns], axis=0)
    return np.asarray(np.where(_fine(requests), total, 0.0), dtype=np.float64)


def _paired(requests: pa.Table) -> pa.Table:
    """The streamed half of a run's pairs, with their ``gain`` and whether texts are ``same``."""
    pairs = Pairs.of(final_rows(requests))
    same = pc.equal(pairs.stream["output_text"], pairs.wait["output_text"])
    table = pairs.stream.append_column("gain", pa.array(pairs.gains()))
    return table.append_column("same", pc.cast(same, pa.float64()))


def _across(one: Aligned, options: Options, *, sampled: bool) -> ConditionChanges:
    """Gain and parity: what each run says of both its deliveries."""
    collected = Collector(one.query_codes, options.seed)
    collected.percentiles("streaming_gain", _columns(one, "gain"), ("p50",))
    if not sampled:
        collected.mean("parity", _columns(one, "same"))
    condition = Condition(BOTH, one.condition.answer_at, one.condition.rate_qps)
    return ConditionChanges(condition, len(one), len(one), None, collected.changes())


def _columns(one: Aligned, name: str) -> Sides:
    return metrics.column(one.base, name), metrics.column(one.other, name)


def _numbers(mask: Booleans) -> Floats:
    return mask.astype(np.float64)


def _fine(requests: pa.Table) -> Booleans:
    return np.array(requests["error_type"].is_null(), dtype=np.bool_)
