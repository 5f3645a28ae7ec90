"""Stream2LLM run logs."""

from pathlib import Path

from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.stream2llm_runs import E2E, TTFT, read_run_log

LOG = """\
event_timestamp,event_type,query_id,request_id,stream,concurrency,duration_secs,details,request_size,concurrent_requests,replay_rate,prev_event_type,num_documents,pipeline_pool_change
12.5,query_start,7,r1,True,16,,,120,3,4.0,,5.0,
13.0,query_ttft,7,r1,True,16,0.0298,,,,4.0,query_start,,+2
14.0,query_e2e_latency,7,r1,False,16,1.5,,,,4.0,query_ttft,,
x,query_ttft,7,r1,True,16,0.0298,,,,4.0,query_start,,
14.0,query_ttft,7,r1,maybe,16,0.0298,,,,4.0,query_start,,
"""


def test_events(tmp_path: Path) -> None:
    (tmp_path / "run_metrics.csv").write_text(LOG)
    log = ImportLog()
    start, ttft, e2e = read_run_log(tmp_path / "run_metrics.csv", log)
    assert (start.timestamp_us, start.duration_us, start.request_size) == (12_500_000, None, 120)
    assert (start.stream, start.num_documents, start.concurrent_requests) == (True, 5, 3)
    assert (ttft.event_type, ttft.duration_us, ttft.pipeline_pool_change) == (TTFT, 29_800, "+2")
    assert (e2e.event_type, e2e.duration_us, e2e.stream) == (E2E, 1_500_000, False)
    assert (log.rows, [one.line for one in log.listed]) == (5, [5, 6])
