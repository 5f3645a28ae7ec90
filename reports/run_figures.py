"""The figures of one run's page, section by section."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from s2l.replayer.run import CLIENT_SCHEMA, Run
from s2l.reports.ccdf_chart import CHUNK_GAP, CcdfChart, ccdf, ttft_ccdf
from s2l.reports.curve_chart import curve_figures
from s2l.reports.figure import Figure
from s2l.reports.gantt_chart import gantt
from s2l.reports.load_figures import client_figures, server_figures, throughput_figures
from s2l.reports.metrics import prefill_hidden, succeeded, ttft_s
from s2l.reports.pairs import Pairs
from s2l.reports.passes import of_delivery, of_final_passes, pass_starts_us, since_s
from s2l.reports.phase_chart import phase_figures
from s2l.reports.run_data import RunData
from s2l.reports.share_chart import gain_chart, hidden_chart
from s2l.reports.slo import Slo
from s2l.reports.summary import Summary
from s2l.reports.token_chart import token_chart
from s2l.reports.workload_chart import workload_figures
from s2l.workloads.plural import counted

_GAP_POINTS = 250


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures by the section that they stand in; a section without data has none."""

    ttft: tuple[Figure, ...]
    phases: tuple[Figure, ...]
    gain: tuple[Figure, ...]
    tokens: tuple[Figure, ...]
    throughput: tuple[Figure, ...]
    chunk_gaps: tuple[Figure, ...]
    curve: tuple[Figure, ...]
    server: tuple[Figure, ...]
    client: tuple[Figure, ...]
    requests: tuple[Figure, ...]
    workload: tuple[Figure, ...]


def run_figures(data: RunData, summary: Summary, pairs: Pairs, slos: tuple[Slo, ...]) -> RunFigures:
    """Draw them from the final requests in ``data``; ``pairs`` are theirs."""
    requests = data.requests
    samples = (_client(data.run), data.run.server())
    client, server = (of_final_passes(data.info, one, summary.asked_at) for one in samples)
    starts = pass_starts_us(data.info, requests, summary.asked_at)
    starts = {one.delivery: starts[one.delivery] for one in summary.deliveries}
    return RunFigures(
        ttft=tuple(_ttft(data, summary)),
        phases=tuple(phase_figures(summary.phases)),
        gain=tuple(_gain(pairs)),
        tokens=tuple(_tokens(data, summary)),
        throughput=tuple(throughput_figures(requests, starts, slos)),
        chunk_gaps=tuple(_chunk_gaps(data)),
        curve=tuple(curve_figures(summary.curve)),
        server=tuple(server_figures(server, starts)),
        client=tuple(client_figures(client, requests, starts)),
        requests=tuple(_gantts(data, starts)),
        workload=tuple(workload_figures(data, [one.delivery for one in summary.deliveries])),
    )


def _client(run: Run) -> pa.Table:
    """The client's samples of itself; none where another tool's run was taken over."""
    if not (run.path / "client.parquet").is_file():
        return CLIENT_SCHEMA.empty_table()
    return run.client()


def _ttft(data: RunData, summary: Summary) -> Iterator[Figure]:
    done = succeeded(data.requests)
    names = [one.delivery for one in summary.deliveries]
    found = ttft_ccdf({name: ttft_s(of_delivery(done, name)) for name in names})
    if found:
        yield _figure(
            found,
            "ttft",
            "Share of requests at least this slow against time to first token, for each delivery;"
            " the percentiles are in the table that follows",
        )


def _chunk_gaps(data: RunData) -> Iterator[Figure]:
    gaps = {name: events.gaps_s for name, events in data.events.items()}
    if found := ccdf(dict(sorted(gaps.items())), CHUNK_GAP, _GAP_POINTS):
        yield _figure(
            found, "chunk-gaps", "Share of gaps between content events that are at least this long"
        )


def _figure(found: CcdfChart, key: str, description: str) -> Figure:
    return Figure(key, "", description, found.spec, found.remarks)


def _gain(pairs: Pairs) -> Iterator[Figure]:
    if spec := gain_chart(pairs.gains()):
        yield Figure("gain", "", "TTFT wait / stream of every paired query, smallest first", spec)


def _tokens(data: RunData, summary: Summary) -> Iterator[Figure]:
    done = succeeded(data.requests)
    names = [one.delivery for one in summary.deliveries]
    hidden = {name: prefill_hidden(of_delivery(done, name)) for name in names}
    if spec := hidden_chart(hidden):
        description = "Share of requests against the share of their prompt prefilled when due"
        yield Figure("prefill-hidden", "Prefill hidden", description, spec)
    if spec := token_chart(summary.deliveries):
        description = "Prompt tokens reused and left to prefill, and tokens invalidated, in all"
        yield Figure("tokens", "Prompt tokens", description, spec)


def _gantts(data: RunData, starts: dict[str, int]) -> Iterator[Figure]:
    sides = {name: of_delivery(data.requests, name) for name in starts}
    until_s = max((_last_end_s(sides[name], start) for name, start in starts.items()), default=0)
    for name, start in starts.items():
        mine = sides[name]
        if found := gantt(mine, name, start, until_s):
            spec, shown = found
            few = shown < mine.num_rows
            remark = f"{shown} of {counted(mine.num_rows, 'request')}." if few else ""
            description = f"Requests of delivery {name} over time: retrieval, first token, answer"
            remarks = (remark,) if remark else ()
            yield Figure(f"gantt-{name}", f"Delivery {name}", description, spec, remarks)


def _last_end_s(requests: pa.Table, start_us: int) -> float:
    """When the last of them was over, answered or not, in seconds since their pass began."""
    names = ("context_intended_us", "last_token_us", "end_us")
    return float(max(np.nanmax(since_s(requests, name, start_us), initial=0) for name in names))
