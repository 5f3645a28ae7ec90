"""What the page shows of one run, ready for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run, RunInfo
from s2l.reports import percentile_tables, tables
from s2l.reports.attainment import UNSENT
from s2l.reports.chart_style import Spec
from s2l.reports.headline import Headline, headline
from s2l.reports.life import Life, typical
from s2l.reports.pairs import Pairs
from s2l.reports.passes import of_final_passes
from s2l.reports.point_tables import PointTable, curve_table, failure_table, phase_table
from s2l.reports.pool_view import PoolView
from s2l.reports.provenance import Fact, client_error, command, facts, reproduce
from s2l.reports.query_table import QueryTable, query_table
from s2l.reports.request_rows import RequestRows, request_rows
from s2l.reports.run_data import RunData
from s2l.reports.run_figures import RunFigures, run_figures
from s2l.reports.score_sources import SourceNote, grade_figures, source_notes
from s2l.reports.server_table import server_figures
from s2l.reports.slo import Slo
from s2l.reports.summary import Summary, stated_slos, summarize_data
from s2l.reports.timeline_chart import timeline
from s2l.reports.units import Unit
from s2l.reports.update_table import update_groups
from s2l.reports.workload_table import workload_groups
from s2l.workloads.plural import counted


@dataclass(frozen=True, slots=True)
class Median:
    """One delivery's median TTFT, or its only one; ``share`` of the slower's, 0 to 100."""

    delivery: str
    label: str
    text: str
    share: float


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
    client_error: str
    slos: tuple[str, ...]
    figures: RunFigures
    queries: QueryTable
    life: LifeView | None
    failures: PointTable | None
    retried: Mapping[str, int]
    server: list[tables.FigureRow]
    grades: list[tables.FigureRow]
    sources: list[SourceNote]
    rows: RequestRows
    command: str
    facts: list[Fact]
    reproduce: list[str]

    @classmethod
    def of(cls, run: Run, slos: Sequence[Slo] | None = None) -> "RunView":
        """Read a run's tables and prepare all that the page says.

        Raises:
            RunError: a table is missing or damaged.
        """
        data = RunData.read(run)
        held_to = stated_slos(run.info) if slos is None else tuple(slos)
        final = data.of_final()
        pairs = Pairs.of(final.requests)
        summary = summarize_data(data, held_to, pairs)
        names = [one.delivery for one in summary.deliveries]
        return cls(
            name=run.path.name,
            info=run.info,
            summary=summary,
            subtitle=_subtitle(run.info, data.queries.num_rows),
            headline=headline(summary),
            medians=_medians(summary),
            client_error=client_error(run.info),
            slos=tuple(map(str, held_to)),
            figures=run_figures(final, summary, pairs, held_to),
            queries=query_table(data, names),
            life=_life(summary, final, pairs),
            failures=failure_table(summary, data.examples, _failures(data.requests)),
            retried=data.retried,
            server=server_figures(of_final_passes(run.info, run.server(), summary.asked_at), names),
            grades=grade_figures(final, names),
            sources=source_notes(run),
            rows=request_rows(data),
            command=command(run.info),
            facts=facts(run.info),
            reproduce=reproduce(run.info),
        )

    def latencies(self) -> list[percentile_tables.PercentileGroup]:
        """Percentiles of the latencies."""
        return percentile_tables.latency_groups(self.summary, percentile_tables.LATENCIES)

    def lags(self) -> list[percentile_tables.PercentileGroup]:
        """Percentiles of how late the client itself was."""
        return percentile_tables.latency_groups(self.summary, percentile_tables.LAGS)

    def levels(self) -> list[str]:
        """Headings of the percentiles."""
        return percentile_tables.level_labels(self.summary)

    def throughput(self) -> list[tables.FigureRow]:
        """Requests, rates and tokens."""
        return tables.throughput_figures(self.summary)

    def mismatch(self) -> str | None:
        """What to say of two counts of tokens that differ."""
        return tables.mismatch_text(self.summary)

    def updates(self) -> list[percentile_tables.PercentileGroup]:
        """Percentiles of what updates of context did; empty where nothing was replaced."""
        return update_groups(self.summary)

    def workload(self) -> list[percentile_tables.PercentileGroup]:
        """Percentiles of what was asked of the server."""
        return workload_groups(self.summary)

    def quality(self) -> list[tables.FigureRow]:
        """Answer scores."""
        return tables.quality_figures(self.summary) + self.grades

    def left_out(self) -> str:
        """What failed, by type: it is in no percentile."""
        failed = (f"{one.delivery}: {tables.failures(one)}" for one in self.summary.deliveries)
        return f"Failed, and in no percentile: {'; '.join(failed)}."

    def curve(self) -> PointTable | None:
        """Quality and waiting by the moment of asking."""
        return curve_table(self.summary.curve)

    def phases(self) -> PointTable | None:
        """TTFT and rates by offered rate; None where the run has one rate."""
        return phase_table(self.summary.phases)

    def parity(self) -> str | None:
        """Parity in a sentence."""
        return tables.parity_text(self.summary)


def _subtitle(info: RunInfo, n_queries: int) -> str:
    target = info.target
    server = f"{target.server} {target.server_version}".strip()
    parts = [target.model, server, counted(n_queries, "query", "queries"), info.created_utc[:10]]
    return " · ".join(part for part in parts if part)


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


def _life(summary: Summary, data: RunData, pairs: Pairs) -> LifeView | None:
    rows = typical(data.requests, pairs)
    if not rows:
        return None
    chunks = data.chunks_of([row["request_id"] for row in rows])
    lives = tuple(Life.of(row, chunks) for row in rows)
    choice = _choice(summary, paired=len(lives) > 1)
    query_id = lives[0].query_id
    at = pc.index(data.queries["query_id"], query_id).as_py()
    text = data.queries["text"][at].as_py() if at >= 0 else query_id
    return LifeView(query_id, text, choice, lives, timeline(lives), PoolView.of(lives))


def _choice(summary: Summary, *, paired: bool) -> str:
    if summary.gain is None or not paired:
        return "whose TTFT is nearest the median"
    if summary.gain.single is not None:
        return "that alone succeeded in both deliveries"
    return "whose gain is nearest the median"


def _failures(requests: pa.Table) -> dict[str, dict[str, int]]:
    """How many requests failed, by delivery and then by type, the most frequent first."""
    failed = requests.filter(pc.is_valid(requests["error_type"]))
    grouped = failed.group_by(["delivery", "error_type"]).aggregate([("request_id", "count")])
    found: dict[str, dict[str, int]] = {}
    order = [("request_id_count", "descending"), ("error_type", "ascending")]
    rows: list[dict[str, Any]] = grouped.sort_by(order).to_pylist()
    for row in sorted(rows, key=lambda row: row["error_type"] == UNSENT):
        found.setdefault(row["delivery"], {})[row["error_type"]] = row["request_id_count"]
    return found
