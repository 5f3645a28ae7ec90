"""The workload, and other distributions that are no latencies, as text cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from s2l.reports.percentile_tables import PercentileGroup, PercentileRow, levels
from s2l.reports.percentiles import Distribution
from s2l.reports.summary import Summary
from s2l.reports.units import NOT_KNOWN
from s2l.reports.workload import Workload


@dataclass(frozen=True, slots=True)
class _Quantity:
    title: str
    unit: str
    explains: str
    of: Callable[[Workload], Distribution]
    decimals: int


_QUANTITIES: Final = (
    _Quantity("Chunks", "per query", "of context", lambda w: w.chunks_per_query, 1),
    _Quantity("Arrival gap", "s", "between chunks of a query", lambda w: w.arrival_gap_s, 3),
    _Quantity("Retrieval", "s", "from query to context due", lambda w: w.retrieval_s, 2),
    _Quantity("Query gap", "s", "between starts of queries", lambda w: w.start_gap_s, 3),
    _Quantity("Chunk", "tokens", "", lambda w: w.chunk_tokens, 0),
    _Quantity("Prompt", "tokens", "as the server counts", lambda w: w.prompt_tokens, 0),
    _Quantity("Answer", "tokens", "as the server counts", lambda w: w.output_tokens, 0),
)


def workload_groups(summary: Summary) -> list[PercentileGroup]:
    """Percentiles of what was asked of the server; quantities that nobody knows are left out."""
    shown = levels(summary)
    groups = []
    for quantity in _QUANTITIES:
        found = [(one.delivery, quantity.of(one.workload)) for one in summary.deliveries]
        if any(each.n for _, each in found):
            rows = tuple(_row(name, each, quantity, shown) for name, each in found)
            groups.append(PercentileGroup(quantity.title, quantity.unit, quantity.explains, rows))
    return groups


def _row(name: str, found: Distribution, what: _Quantity, shown: list[str]) -> PercentileRow:
    values = [found.level(level) for level in shown]
    cells = (NOT_KNOWN if value is None else _text(value, what.decimals) for value in values)
    return PercentileRow(name, found.n, tuple(cells))


def _text(value: float, decimals: int) -> str:
    """At most so many decimals, none for a whole number of things."""
    return f"{value:,.0f}" if decimals < 2 and value == int(value) else f"{value:,.{decimals}f}"
