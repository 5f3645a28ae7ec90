"""How the context of one query changed: the chart, and the same as a table."""

from dataclasses import dataclass

from s2l.reports.chart_style import Spec
from s2l.reports.life import Life
from s2l.reports.pool import Pool, PoolUpdate
from s2l.reports.pool_chart import POSITION_LIMIT, pool_chart
from s2l.reports.units import percent


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One update as text; documents by their numbers."""

    time: str
    kind: str
    kept: str
    put: str
    thrown_away: str
    reuse: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """The chart of a query's pool, how its documents are numbered, and all of its updates."""

    chart: Spec
    places_left_out: int
    rows: tuple[PoolRow, ...]

    @classmethod
    def of(cls, lives: tuple[Life, ...]) -> "PoolView | None":
        """Of the first delivery in which something that was sent was replaced, if there is one."""
        pools = (Pool.of(life) for life in lives)
        pool = next((pool for pool in pools if pool is not None and pool.changes), None)
        if pool is None:
            return None
        places = max(len(update.documents) for update in pool.updates)
        numbers = pool.numbers()
        rows = tuple(_row(update, numbers) for update in pool.updates)
        return cls(pool_chart(pool), max(places - POSITION_LIMIT, 0), rows)


def _row(update: PoolUpdate, numbers: dict[str, int]) -> PoolRow:
    named = [str(numbers[doc]) for doc in update.documents]
    return PoolRow(
        time=f"{update.time_s:.3f}",
        kind="replace" if update.replaces else "append",
        kept=" ".join(named[: update.kept]) or "none",
        put=" ".join(named[update.kept :]) or "none",
        thrown_away=f"{update.thrown_away:,}",
        reuse=percent(update.reuse),
    )
