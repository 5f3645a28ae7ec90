"""RAGPulse: components with their lengths in side files."""

import json
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.errors import ExportFailed, ImportFailed
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.trace import Trace

ROWS = [
    {
        "timestamp": "93",
        "input_length": 60,
        "output_length": 9,
        "hash_ids": {"sys_prompt": [1, 2], "passages_ids": [11, 12, 11], "history": [21]}
        | {"web_search": [31], "user_input": [41]},
        "session_id": "s-1",
    },
    {
        "timestamp": "82.5",
        "input_length": 7,
        "output_length": 3,
        "hash_ids": {"sys_prompt": [], "passages_ids": [12], "history": []}
        | {"web_search": [], "user_input": [42]},
        "session_id": "s-2",
    },
]
SIDES = {
    "1_sys_prompt.jsonl": ("sys_prompt_id", {1: 8, 2: 4}),
    "2_passages.jsonl": ("passage_id", {11: 10, 12: 5}),
    "3_history.jsonl": ("history_id", {21: 6}),
    "4_user_input.jsonl": ("user_input_id", {41: 3, 42: 2}),
    "5_web_search.jsonl": ("web_search_id", {31: 7}),
}


@pytest.fixture
def ragpulse(tmp_path: Path) -> Path:
    folder = tmp_path / "rag"
    folder.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / "ragpulse-0_trace.jsonl").write_text(text + "\n")
    for name, (key, lengths) in SIDES.items():
        rows = ({key: block, "token_length": n} for block, n in lengths.items())
        (folder / f"ragpulse-{name}").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_passages_are_arrivals(ragpulse: Path, bench: Any) -> None:
    log = ImportLog()
    trace = bench.read("ragpulse", ragpulse, ImportOptions(passage_gap_us=500), log)
    assert (log.rows, log.bad, log.side_rows) == (2, 0, 8)
    first, second = trace.queries()  # in order of time, which the file is not
    assert (first.query_id, first.offset_us, second.offset_us) == (
        "r0000002",
        82_500_000,
        93_000_000,
    )
    assert len(second.text.split()) == 3
    found = [(a.arrival_us, a.doc_ids) for a in trace.arrivals() if a.query_id == "r0000001"]
    assert found == [
        (0, ("sys_prompt-1", "sys_prompt-2", "history-21")),
        (500, ("passage-11",)),
        (1_000, ("passage-12",)),
        (1_500, ("passage-11",)),
        (2_000, ("web_search-31",)),
        (2_000, ()),
    ]
    lengths = {one.doc_id: len((one.text or "").split()) for one in trace.documents()}
    assert lengths["passage-11"] == 10
    assert lengths["web_search-31"] == 7


@pytest.mark.parametrize("gap_us", [0, 500])
def test_round_trip(gap_us: int, ragpulse: Path, bench: Any, same: Any) -> None:
    options = ImportOptions(passage_gap_us=gap_us)
    trace = bench.read("ragpulse", ragpulse, options)
    out = bench.write("ragpulse", trace)
    same(trace, bench.read("ragpulse", out, options))


def test_bad_rows(ragpulse: Path, bench: Any) -> None:
    file = ragpulse / "ragpulse-0_trace.jsonl"
    unknown = json.dumps({**ROWS[0], "hash_ids": {"passages_ids": [99]}})
    untimed = json.dumps({**ROWS[0], "timestamp": "soon"})
    file.write_text(f"{file.read_text()}{unknown}\n{untimed}\n")
    side = ragpulse / "ragpulse-2_passages.jsonl"
    side.write_text(f'{side.read_text()}{{"passage_id": 13}}\n')
    log = ImportLog()
    bench.read("ragpulse", ragpulse, log=log)
    assert (log.rows, log.bad) == (5, 3)
    assert [one.text for one in log.listed] == [
        "token_length is None; it must be a whole number, 0 or more",
        "passage_id 99 is not in 2_passages.jsonl",
        "timestamp is 'soon'; it must be a number",
    ]


def test_a_missing_side_file(ragpulse: Path, bench: Any) -> None:
    (ragpulse / "ragpulse-3_history.jsonl").unlink()
    with pytest.raises(ImportFailed, match=r"must hold one file \*3_history.jsonl; it has none"):
        bench.read("ragpulse", ragpulse)


def test_other_traces_have_no_components(bench: Any, trace_path: Path) -> None:
    with pytest.raises(ExportFailed, match="is no component of a RAGPulse request"):
        bench.write("ragpulse", Trace.open(trace_path))


def test_blocks_that_are_no_numbers_are_bad_rows(ragpulse: Path, bench: Any) -> None:
    file = ragpulse / "ragpulse-0_trace.jsonl"
    file.write_text(file.read_text().replace("[11, 12, 11]", "[[11]]"))
    log = ImportLog()
    trace = bench.read("ragpulse", ragpulse, ImportOptions(), log)
    assert [query.query_id for query in trace.queries()] == ["r0000002"]
    assert "hash_ids.passages_ids must be a list of whole numbers" in str(log.listed[0])
