"""What the site says of one run and of its trace, read from their folders."""

from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run, RunInfo, TraceRef
from s2l.reports.delivery import Outcomes
from s2l.reports.gain import StreamingGain
from s2l.reports.metrics import succeeded, ttft_s
from s2l.reports.moments import early_moment, final_rows
from s2l.reports.pairs import Pairs
from s2l.reports.percentiles import percentile
from s2l.reports.phases import phases_of
from s2l.reports.request_metrics import light_requests, request_scores
from s2l.reports.site.index import DeliveryFigures, RunEntry, TraceEntry, slug
from s2l.reports.sweep import is_sweep
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import MANIFEST, Manifest, decode_manifest

_DELIVERIES: Final = ("stream", "wait")


def run_entry(run: Run) -> RunEntry:
    """One line of the index.

    Raises:
        RunError: a table is missing or damaged.
    """
    info, requests = run.info, light_requests(run)
    final = final_rows(requests)
    exact = request_scores(final, run)["exact_match"]
    gain = StreamingGain.of(Pairs.of(final), info.seed)
    interval = gain.interval
    known = exact[~np.isnan(exact)]
    return RunEntry(
        id=run_id(run),
        name=_name(run),
        created_utc=info.created_utc,
        trace_id=trace_id(info.trace),
        trace_name=info.trace.name,
        model=info.target.model,
        server=f"{info.target.server} {info.target.server_version}".strip(),
        rates_qps=_rates(info, final),
        queries=pc.count_distinct(requests["query_id"]).as_py(),
        verdict=info.validity.verdict,
        interrupted=info.interrupted,
        deliveries=[_figures(final, name) for name in _DELIVERIES if _has(final, name)],
        gain=gain.median,
        gain_interval=None if interval is None else (interval.low, interval.high),
        exact_match=float(known.mean()) if known.size else None,
        asked_at=early_moment(requests),
    )


def _rates(info: RunInfo, requests: pa.Table) -> list[float]:
    """The rates that were offered: those of the final requests, else of the steps; a ramp's
    ends."""
    stated = requests["rate"].drop_null().unique().to_pylist()
    phases, _ = phases_of(info, requests)
    ends = sorted({rate for one in phases for rate in (one.from_qps, one.to_qps)})
    if any(one.from_qps != one.to_qps for one in phases):
        ends = [ends[0], ends[-1]]
    return sorted({*map(float, stated), *ends})


def run_id(run: Run) -> str:
    """The run's name with a hash of what it recorded: the same wherever the folder lies."""
    digest = sha256()
    for name in ("run.json", "requests.parquet"):
        with (run.path / name).open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    return f"{slug(_name(run))}-{digest.hexdigest()[:8]}"


def _name(run: Run) -> str:
    """The folder's name; within a sweep that of the sweep before it."""
    folder = run.path.resolve()
    return f"{folder.parent.name}/{folder.name}" if is_sweep(folder.parent) else folder.name


def trace_id(trace: TraceRef) -> str:
    """The trace's name with the beginning of its hash."""
    return f"{slug(trace.name)}-{trace.sha256[:12]}" if trace.sha256 else slug(trace.name)


def trace_entry(run: Run) -> TraceEntry:
    """The trace of a run; with its facts where the very trace still lies where it was."""
    trace = run.info.trace
    manifest = _manifest(run)
    return TraceEntry(
        id=trace_id(trace),
        name=trace.name,
        sha256=trace.sha256,
        facts=[] if manifest is None else _facts(manifest),
    )


def _manifest(run: Run) -> Manifest | None:
    """None where the trace is gone, or another one lies in its place by now.

    A path in a run is from where the replay was started, which is where ``runs/`` is.
    """
    trace = run.info.trace
    started_in = run.path.resolve().parent.parent
    for folder in (Path(trace.path), started_in / trace.path) if trace.path else ():
        if not (file := folder / MANIFEST).is_file():
            continue
        data = file.read_bytes()
        if sha256(data).hexdigest() == trace.sha256:
            return _decoded(data, file)
    return None


def _decoded(data: bytes, file: Path) -> Manifest | None:
    try:
        return decode_manifest(data, file)
    except TraceError:
        return None


def _facts(manifest: Manifest) -> list[tuple[str, str]]:
    counts, collector = manifest.counts, manifest.collector
    failures = ", ".join(f"{name} {n:,}" for name, n in counts.failures.items())
    return [
        ("Queries", f"{counts.queries:,}, {counts.finished_queries:,} recorded to their end"),
        ("Arrivals", f"{counts.arrivals:,}"),
        ("Failed arrivals", failures or "none"),
        ("Documents", f"{counts.documents:,}"),
        ("Collected by", f"{collector.name} {collector.version}"),
        ("Seed", "none" if collector.seed is None else str(collector.seed)),
        ("Recorded", manifest.created_utc),
        ("Clock", manifest.clock),
        ("Licence", manifest.licence),
        ("Privacy", manifest.privacy),
    ]


def _has(requests: pa.Table, delivery: str) -> bool:
    return bool(pc.any(pc.equal(requests["delivery"], delivery)).as_py())


def _figures(requests: pa.Table, delivery: str) -> DeliveryFigures:
    mine = requests.filter(pc.equal(requests["delivery"], delivery))
    outcomes = Outcomes.of(mine)
    values = ttft_s(succeeded(mine))
    values = values[~np.isnan(values)]
    return DeliveryFigures(
        delivery=delivery,
        succeeded=outcomes.succeeded,
        planned=outcomes.planned,
        unsent=outcomes.unsent,
        ttft_p50_s=percentile(values, 50),
        ttft_p95_s=percentile(values, 95),
    )
