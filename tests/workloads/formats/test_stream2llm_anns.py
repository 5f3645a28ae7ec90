"""Stream2LLM vector search traces, to the letter of their description."""

import json
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace

HEAD = "StartTime_us,EndTime_us,StartIteration,EndIteration,PipelinePool\n"
WINDOWS = HEAD + (
    '1000,40000,1,9,"(7,8,)"\n'
    '40000,90000,10,20,"""(8,9)"""\n'
    "90000,95000,21,22,()\n"
    '95000,3000000,23,99,"(9,404,7)"\n'
)


@pytest.fixture
def anns(tmp_path: Path) -> Path:
    folder = tmp_path / "anns"
    (folder / "res").mkdir(parents=True)
    (folder / "res" / "_L10000_W8_query3_pipeline_trace.csv").write_text(WINDOWS)
    (folder / "res" / "_L10000_W8_query12_pipeline_trace.csv").write_text(HEAD + "5,6,0,1,(7)\n")
    entries = {
        "3": {"query": "Near?", "trace_file": "res/_L10000_W8_query3_pipeline_trace.csv"},
        "12": {"query": "Far?", "trace_file": "../x/_L10000_W8_query12_pipeline_trace.csv"},
    }
    (folder / "query_trace_map_5k.json").write_text(json.dumps(entries))
    shards = {
        "retrieved_corpus_content.part.0.json": {"7": "seven", "1": "not retrieved"},
        "retrieved_corpus_content.1.json": {"8": "eight", "9": "néun", "7": "again"},
    }
    for name, texts in shards.items():
        (folder / name).write_text(json.dumps(texts))
    return folder


def test_arrival_at_the_end(anns: Path, bench: Any) -> None:
    log = ImportLog()
    trace = bench.read("stream2llm-anns", anns, log=log)
    assert (log.rows, log.bad) == (5, 0)
    assert log.warnings == {"documents missing from the corpus": 1}
    assert trace.manifest.collector.options["arrival"] == "end"
    assert list(trace.queries()) == [Query("3", "Near?"), Query("12", "Far?")]
    assert sorted(one.doc_id for one in trace.documents()) == ["7", "8", "9"]
    arrivals = list(trace.arrivals())
    assert [(a.start_us, a.arrival_us, a.doc_ids) for a in arrivals[:4]] == [
        (1_000, 40_000, ("7", "8")),
        (40_000, 90_000, ("8", "9")),
        (90_000, 95_000, ()),
        (95_000, 3_000_000, ("9", "7")),
    ]
    assert {a.kind for a in arrivals[:4]} == {ArrivalKind.REPLACE}
    assert arrivals[0].meta == {"start_iteration": 1, "end_iteration": 9}
    assert arrivals[4] == Arrival("3", 4, ArrivalKind.END, 3_000_000, 3_000_000)


def test_arrival_at_the_start(anns: Path, bench: Any) -> None:
    trace = bench.read("stream2llm-anns", anns, ImportOptions(arrival="start"))
    assert trace.manifest.collector.options["arrival"] == "start"
    arrivals = list(trace.arrivals())
    assert [a.arrival_us for a in arrivals[:5]] == [1_000, 40_000, 90_000, 95_000, 3_000_000]
    assert arrivals[3].meta["window_end_us"] == 3_000_000


def test_a_query_that_is_left_out_has_its_own_delay(anns: Path, bench: Any, tmp_path: Path) -> None:
    file = anns / "query_trace_map_5k.json"
    entries = json.loads(file.read_text())
    file.write_text(json.dumps({"3": entries["3"], "7": {}, "12": entries["12"]}))
    (tmp_path / "delays").write_text("1\n1\n1\n")
    log = ImportLog()
    trace = bench.read("stream2llm-anns", anns, ImportOptions(delays=tmp_path / "delays"), log)
    assert "query '7' has no text in query" in str(log.listed[0])
    assert {q.query_id: q.offset_us for q in trace.queries()} == {"3": 1_000_000, "12": 3_000_000}


@pytest.mark.parametrize("arrival", ["start", "end"])
def test_round_trip(arrival: str, anns: Path, bench: Any, same: Any, tmp_path: Path) -> None:
    (tmp_path / "delays").write_text("0.5\n2.25\n")
    options = ImportOptions(arrival, tmp_path / "delays")
    trace = bench.read("stream2llm-anns", anns, options)
    out = bench.write("stream2llm-anns", trace)
    again = ImportOptions(arrival, out / "arrival_delays.txt")
    same(trace, bench.read("stream2llm-anns", out, again))


def test_appended_context_is_written_whole(bench: Any, trace_path: Path) -> None:
    trace = Trace.open(trace_path)
    out = bench.write("stream2llm-anns", trace)
    again = bench.read("stream2llm-anns", out)
    first = next(trace.retrievals()).arrivals[1].doc_ids
    pools = [a.doc_ids for a in again.arrivals() if a.query_id == "q-a"]
    assert pools == [(), first, first, ()]


def test_what_is_bad_is_named(anns: Path, bench: Any) -> None:
    file = anns / "res" / "_L10000_W8_query3_pipeline_trace.csv"
    file.write_text(
        HEAD + '1,2,0,0,7;8\n2,1,0,0,(7)\n-1,2,0,0,(7)\n1.5,2,0,0,(7)\n4,5,0,0,"(7,8)"\n'
    )
    entries = json.loads((anns / "query_trace_map_5k.json").read_text())
    entries |= {"13": {"query": "Gone?", "trace_file": "res/gone.csv"}, "14": {"query": 5}}
    (anns / "query_trace_map_5k.json").write_text(json.dumps(entries))
    (anns / "retrieved_corpus_content.2.json").write_text('{"8": "cut')
    log = ImportLog()
    trace = bench.read("stream2llm-anns", anns, log=log)
    assert trace.manifest.counts.queries == 2
    assert (log.rows, log.bad) == (6, 4)
    text = "\n".join(map(str, log.listed)).replace(f"{anns}/", "")
    assert "query '13': res/gone.csv is missing" in text
    assert "query '14' has no text in query" in text
    assert "retrieved_corpus_content.2.json: not JSON" in text
    assert "query3_pipeline_trace.csv, line 2: PipelinePool is '7;8'; it must be (id,id" in text
    assert "line 3: EndTime_us 1 is before StartTime_us 2" in text
    assert "line 4: StartTime_us is '-1'; it must be a whole number, 0 or more" in text


def test_a_folder_without_a_map(tmp_path: Path, bench: Any) -> None:
    with pytest.raises(ImportFailed, match="has no query_trace_map"):
        bench.read("stream2llm-anns", tmp_path)
