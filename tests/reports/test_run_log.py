"""Run logs of Stream2LLM as runs: their own figures, and what they do not say."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from s2l.replayer.run import Run, RunError
from s2l.reports import metrics
from s2l.reports.comparison.comparable import NotComparable
from s2l.reports.comparison.compare import compare
from s2l.reports.run_log import import_run_log, intended_times_known
from s2l.reports.summary import summarize
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.import_log import ImportLog

HEAD = (
    "event_timestamp,event_type,query_id,request_id,stream,concurrency,duration_secs,details,"
    "request_size,concurrent_requests,replay_rate,prev_event_type"
)


def log_of(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def row(at: float, kind: str, query: int, duration: str = "", stream: str = "True") -> str:
    return f"{at},{kind},{query},r{query},{stream},16,{duration},,,,4.0,"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return log_of(
        tmp_path / "run_metrics.csv",
        row(1000.0, "query_start", 7),
        row(1002.0298, "query_ttft", 7, "0.0298"),
        row(1003.5, "query_e2e_latency", 7, "1.5"),
        row(1000.5, "query_start", 8),
        row(1001.5, "chunk_added", 8),
        row(1004.25, "query_ttft", 7, "0.25", "False"),
        row(1005.0, "query_start", 9),
    )


def test_times_are_the_log_s_own(file: Path, tmp_path: Path) -> None:
    info = import_run_log(file, tmp_path / "run", ImportLog())
    run = Run.open(tmp_path / "run")
    requests = run.requests()
    assert requests["delivery"].to_pylist() == ["stream", "stream", "wait", "stream"]
    assert requests["query_id"].to_pylist() == ["8", "7", "7", "9"]
    assert requests["rate"].to_pylist() == [4.0] * 4
    np.testing.assert_allclose(metrics.ttft_s(requests), [np.nan, 0.0298, 0.25, np.nan])
    np.testing.assert_allclose(metrics.e2e_s(requests), [np.nan, 1.5, np.nan, np.nan])
    np.testing.assert_allclose(metrics.ttft_user_s(requests)[1], 2.0298)
    assert requests["error_type"].to_pylist() == ["not_logged", None, None, "not_logged"]
    assert requests["prompt_tokens"].null_count == 4
    assert (info.counts.planned, info.counts.succeeded) == (4, 2)
    assert info.counts.failed == {"not_logged": 2}


def test_it_says_what_is_not_known(file: Path, tmp_path: Path) -> None:
    import_run_log(file, tmp_path / "run", ImportLog())
    info = Run.open(tmp_path / "run").info
    assert info.validity.verdict == "degraded"
    assert "run_metrics.csv does not say: intended start times" in info.validity.findings[0].text
    assert not intended_times_known(info)
    assert (info.trace.sha256, info.target.model) == ("", "")
    assert info.options["file"] == "run_metrics.csv"
    assert str(tmp_path) not in (tmp_path / "run" / "run.json").read_text()


def test_published_percentiles_come_back(tmp_path: Path) -> None:
    times = np.random.default_rng(0).lognormal(-3, 1, 2_000).round(6)
    rows = [row(2000.0 + i, "query_ttft", i, f"{t:.6f}") for i, t in enumerate(times)]
    import_run_log(log_of(tmp_path / "l.csv", *rows), tmp_path / "run", ImportLog())
    summary = summarize(Run.open(tmp_path / "run"))
    found = summary.deliveries[0].latencies.ttft_s
    expected = np.percentile(times, [50, 95, 99])
    np.testing.assert_allclose([found.p50, found.p95, found.p99], expected, atol=1e-6)


def test_a_query_run_twice_is_two_requests(tmp_path: Path) -> None:
    file = log_of(
        tmp_path / "l.csv",
        row(1.0, "query_start", 1),
        row(2.0, "query_ttft", 1, "0.1"),
        row(3.0, "query_start", 1),
        row(4.0, "query_ttft", 1, "0.2"),
        row(5.0, "query_ttft", 1, "0.3"),
    )
    import_run_log(file, tmp_path / "run", ImportLog())
    ttfts = metrics.ttft_s(Run.open(tmp_path / "run").requests())
    np.testing.assert_allclose(ttfts, [0.1, 0.2, 0.3])


def test_bad_rows_are_named_or_fatal(tmp_path: Path) -> None:
    rows = [row(1.0, "query_ttft", 1, "0.1"), row(2.0, "query_ttft", 2, "soon")]
    file = log_of(tmp_path / "l.csv", *rows)
    log = ImportLog()
    import_run_log(file, tmp_path / "run", log)
    assert [(one.line, log.bad) for one in log.listed] == [(3, 1)]
    with pytest.raises(ImportFailed, match="line 3"):
        import_run_log(file, tmp_path / "strict", ImportLog(strict=True))
    assert not (tmp_path / "strict").exists()


def test_rows_that_do_not_say_how_they_were_delivered(tmp_path: Path) -> None:
    file = log_of(tmp_path / "l.csv", row(1.0, "query_ttft", 1, "0.1", ""))
    log = ImportLog()
    with pytest.raises(RunError, match="no request in it"):
        import_run_log(file, tmp_path / "run", log)
    assert sum(log.warnings.values()) == 1
    import_run_log(file, tmp_path / "run", ImportLog(), delivery="wait")
    assert Run.open(tmp_path / "run").requests()["delivery"].to_pylist() == ["wait"]
    with pytest.raises(RunError, match="is there already"):
        import_run_log(file, tmp_path / "run", ImportLog(), delivery="wait")


def test_a_request_without_any_moment_is_counted(tmp_path: Path) -> None:
    rows = [row(1.0, "query_e2e_latency", 1, "0.1"), row(2.0, "query_ttft", 2, "0.1")]
    log = ImportLog()
    info = import_run_log(log_of(tmp_path / "l.csv", *rows), tmp_path / "run", log)
    assert info.counts.planned == 1
    assert dict(log.warnings) == {"requests with neither a query_start nor a query_ttft": 1}


def test_it_is_compared_with_what_can_be_known(
    file: Path, tmp_path: Path, synthetic: ModuleType
) -> None:
    import_run_log(file, tmp_path / "run", ImportLog())
    theirs = Run.open(tmp_path / "run")
    ours = synthetic.request_table(
        synthetic.request(query_id="7", rate=4.0, start_intended_us=50, context_intended_us=60)
    )
    found = compare(theirs, Run.open(synthetic.write_run(tmp_path / "ours", ours)))
    assert found.conditions[0].pairs == 1
    assert [remark.partition(":")[0] for remark in found.remarks] == [
        "One of them does not say which trace it replayed",
        "Only the base has wait",
        "One of them does not say when requests were due",
        "stream",
    ]
    others = synthetic.request_table(synthetic.request(query_id="unknown", rate=4.0))
    with pytest.raises(NotComparable, match="no query in common"):
        compare(theirs, Run.open(synthetic.write_run(tmp_path / "others", others)))
