"""What the page shows of one run, ready for the template."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run, RunInfo
from s2l.reports import tables
from s2l.reports.chart_style import Spec
from s2l.reports.headline import Headline, headline
from s2l.reports.life import Life, typical
from s2l.reports.metrics import succeeded, ttft_s
from s2l.reports.pool_view import PoolView
from s2l.reports.provenance import Fact, command, facts
from s2l.reports.query_table import QueryTable, query_table
from s2l.reports.summary import Summary, references_of, summarize_tables
from s2l.reports.timeline_chart import timeline
from s2l.reports.ttft_chart import CcdfChart, ttft_ccdf
from s2l.reports.units import Unit, counted
from s2l.reports.update_table import update_groups


@dataclass(frozen=True, slots=True)
class Median:
    """One delivery's median TTFT, or its only one; ``share`` of the slower's, 0 to 100."""

    delivery: str
    label: str
    text: str
    share: float


@dataclass(frozen=True, slots=True)
class FailureRow:
    """How often one type of failure occurred, for each delivery."""

    error_type: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LifeView:
    """The query whose life is drawn; its pool too where what was sent was replaced."""

    query_id: str
    text: str
    choice: str
    lives: tuple[Life, ...]
    chart: Spec
    pool: PoolView | None


@dataclass(frozen=True, slots=True)
class RunView:
    """One run on the page."""

    name: str
    info: RunInfo
    summary: Summary
    subtitle: str
    headline: Headline
    medians: tuple[Median, ...]
    ccdf: CcdfChart | None
    queries: QueryTable
    life: LifeView | None
    failures: tuple[FailureRow, ...]
    command: str
    facts: list[Fact]

    @classmethod
    def of(cls, run: Run) -> "RunView":
        """Read a run's tables and prepare all that the page says.

        Raises:
            RunError: a table is missing or damaged.
        """
        requests, chunks, queries = run.requests(), run.chunks(), run.queries()
        summary = summarize_tables(run.info, requests, chunks, queries)
        texts = dict(zip(*(queries[n].to_pylist() for n in ("query_id", "text")), strict=True))
        names = [one.delivery for one in summary.deliveries]
        return cls(
            name=run.path.name,
            info=run.info,
            summary=summary,
            subtitle=_subtitle(run.info, queries.num_rows),
            headline=headline(summary),
            medians=_medians(summary),
            ccdf=ttft_ccdf(_ttfts(requests, names)),
            queries=query_table(requests, texts, references_of(queries), names),
            life=_life(summary, requests, chunks, texts),
            failures=_failures(summary),
            command=command(run.info),
            facts=facts(run.info),
        )

    def latencies(self) -> list[tables.PercentileGroup]:
        """Percentiles of the latencies."""
        return tables.latency_groups(self.summary, tables.LATENCIES)

    def lags(self) -> list[tables.PercentileGroup]:
        """Percentiles of how late the client itself was."""
        return tables.latency_groups(self.summary, tables.LAGS)

    def levels(self) -> list[str]:
        """Headings of the percentiles."""
        return tables.level_labels(self.summary)

    def throughput(self) -> list[tables.FigureRow]:
        """Requests, rates and tokens."""
        return tables.figures(self.summary, tables.REQUESTS + tables.THROUGHPUT)

    def updates(self) -> list[tables.PercentileGroup]:
        """Percentiles of what updates of context did; empty where nothing was replaced."""
        return update_groups(self.summary)

    def quality(self) -> list[tables.FigureRow]:
        """Answer scores."""
        return tables.figures(self.summary, tables.QUALITY)

    def parity(self) -> str | None:
        """Parity in a sentence."""
        return tables.parity_text(self.summary)


def inert_json(value: Any) -> str:
    """JSON that stays data inside a script element, whatever text is in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _subtitle(info: RunInfo, n_queries: int) -> str:
    target = info.target
    server = f"{target.server} {target.server_version}".strip()
    parts = [target.model, server, counted(n_queries, "query", "queries"), info.created_utc[:10]]
    return " · ".join(part for part in parts if part)


def _ttfts(requests: pa.Table, deliveries: list[str]) -> dict[str, Any]:
    done = succeeded(requests)
    return {name: ttft_s(done.filter(pc.equal(done["delivery"], name))) for name in deliveries}


def _medians(summary: Summary) -> tuple[Median, ...]:
    ttfts = [(one.delivery, one.latencies.ttft_s) for one in summary.deliveries]
    found = {name: ttft.min if ttft.n == 1 else ttft.p50 for name, ttft in ttfts}
    unit = Unit.fitting(found.values())
    most = max((value or 0 for value in found.values()), default=0) or 1
    return tuple(
        Median(
            delivery=name,
            label="the only TTFT" if ttft.n == 1 else f"median TTFT of {ttft.n:,}",
            text=unit.with_name(found[name]),
            share=100 * max(found[name] or 0, 0) / most,
        )
        for name, ttft in ttfts
    )


def _life(
    summary: Summary, requests: pa.Table, chunks: pa.Table, texts: dict[str, str]
) -> LifeView | None:
    lives = typical(requests, chunks)
    if not lives:
        return None
    paired = summary.gain is not None and len(lives) > 1
    choice = "whose gain is nearest the median" if paired else "whose TTFT is nearest the median"
    query_id = lives[0].query_id
    text, pool = texts.get(query_id, query_id), PoolView.of(lives)
    return LifeView(query_id, text, choice, lives, timeline(lives), pool)


def _failures(summary: Summary) -> tuple[FailureRow, ...]:
    by_delivery = [
        one.outcomes.failed | ({"unsent": one.outcomes.unsent} if one.outcomes.unsent else {})
        for one in summary.deliveries
    ]
    types = dict.fromkeys(name for counts in by_delivery for name in counts)
    return tuple(
        FailureRow(name, tuple(counts.get(name, 0) for counts in by_delivery)) for name in types
    )
