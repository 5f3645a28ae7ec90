"""Formats of one request a row: what they read, and that it comes back as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.query import Query

APPEND, END = ArrivalKind.APPEND, ArrivalKind.END

MOONCAKE = [
    {"timestamp": 0, "input_length": 1030, "output_length": 5, "hash_ids": [0, 1, 2]},
    {"timestamp": 0.5, "input_length": 1024, "output_length": 1, "hash_ids": [0, 7]},
    {"timestamp": 3000, "input_length": 30, "output_length": 9},
    {"timestamp": 3001, "input_length": 0, "output_length": 9},
    {"timestamp": 4000, "text_input": "Say it.", "output_length": 2, "priority": "high"},
    {"session_id": "s", "text_input": "One?", "output_length": 1},
    {"session_id": "s", "delay": 250, "text_input": "Two?", "output_length": 1},
    {
        "timestamp": 9000,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}],
    },
]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("fmt", ["mooncake", "timed-trace"])
def test_timed_rows_come_back(fmt: str, tmp_path: Path, bench: Any, same: Any) -> None:
    trace = bench.read(fmt, lines(tmp_path / "m.jsonl", MOONCAKE))
    out = bench.write(fmt, trace, ".jsonl")
    same(trace, bench.read(fmt, out))
    # The session began at 0, so its rows come earlier in a trace, and say which ones they were.
    written = {row.pop("query_id", f"r{n:07}"): row for n, row in enumerate(rows_of(out), 1)}
    assert [written[f"r{n:07}"] for n in range(1, 9)] == MOONCAKE


def test_blocks_are_shared_text(tmp_path: Path, bench: Any) -> None:
    trace = bench.read("mooncake", lines(tmp_path / "m.jsonl", MOONCAKE[:3]))
    texts = {one.doc_id: one.text or "" for one in trace.documents()}
    lengths = {name: len(text.split()) for name, text in texts.items()}
    names = ("block-0", "block-1", "block-7")
    assert lengths == dict.fromkeys(names, 512) | {"block-2-6": 6, "input-r0000003": 30}
    arrivals = list(trace.arrivals())
    assert arrivals[0] == Arrival("r0000001", 0, APPEND, 0, 0, ("block-0", "block-1", "block-2-6"))
    assert arrivals[2].doc_ids == ("block-0", "block-7")
    queries = list(trace.queries())
    assert [one.offset_us for one in queries] == [0, 500, 3_000_000]
    assert queries[0] == Query("r0000001", "", (), 0, {"output_tokens": 5})


def test_sessions_go_on_after_their_delay(tmp_path: Path, bench: Any) -> None:
    rows = [
        {"timestamp": 100, "session_id": "a", "input_length": 1},
        {"delay": 50, "session_id": "a", "input_length": 1},
        {"delay": 25.5, "session_id": "a", "input_length": 1},
    ]
    trace = bench.read("mooncake", lines(tmp_path / "m.jsonl", rows))
    assert [one.offset_us for one in trace.queries()] == [100_000, 150_000, 175_500]


def test_bad_timed_rows(tmp_path: Path, bench: Any) -> None:
    file = lines(
        tmp_path / "m.jsonl",
        [
            {"timestamp": 0, "input_length": 1, "output_length": 1},
            {"timestamp": -1, "input_length": 1},
            {"timestamp": 0, "input_length": 513, "hash_ids": [0]},
            {"timestamp": 0, "input_length": 5, "hash_ids": ["a"]},
            {"timestamp": 0, "input_length": -5},
            {"input_length": 5},
            {"timestamp": 0, "messages": []},
            {"timestamp": 0, "text_input": 7},
            {"timestamp": 0, "input_length": 1, "query_id": "r0000001"},
        ],
    )
    file.write_text(file.read_text() + "\n[1]\n{cut\n")
    log = ImportLog()
    bench.read("mooncake", file, log=log)
    assert (log.rows, log.bad) == (11, 10)
    assert [(one.line, one.text) for one in log.listed] == [
        (2, "timestamp is -1; it must be 0 or more"),
        (3, "hash_ids has 1 blocks; 513 tokens are 2"),
        (4, "hash_ids must be a list of whole numbers, 0 or more"),
        (5, "input_length is -5; it must be a whole number, 0 or more"),
        (6, "needs a timestamp (ms), or a session_id with a delay (ms)"),
        (7, "messages must be a list with at least one message"),
        (8, "text_input is 7; it must be text"),
        (9, "query_id 'r0000001' is empty or occurs twice"),
        (11, "not a JSON object"),
        (12, "JSON is malformed: object keys must be strings (byte 1)"),
    ]


def test_a_folder_of_files(tmp_path: Path, bench: Any) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("b", "a"):
        lines(folder / f"{name}.jsonl", MOONCAKE[:1])
    log = ImportLog()
    trace = bench.read("mooncake", folder, log=log)
    assert [one.query_id for one in trace.queries()] == ["a-r0000001", "b-r0000001"]
    assert log.files == 2


def test_custom(tmp_path: Path, bench: Any, same: Any) -> None:
    rows = [{"prompt": "Äh?", "output_tokens": 7}, {"prompt": "x\ny", "topic": "t"}]
    trace = bench.read("custom", lines(tmp_path / "c.jsonl", rows))
    assert list(trace.queries()) == [
        Query("r0000001", "Äh?", meta={"output_tokens": 7}),
        Query("r0000002", "x\ny", meta={"topic": "t"}),
    ]
    out = bench.write("custom", trace, ".jsonl")
    assert rows_of(out) == [rows[0], {"topic": "t", "prompt": "x\ny"}]
    same(trace, bench.read("custom", out))


def test_guidellm(tmp_path: Path, bench: Any, same: Any) -> None:
    rows = [
        {"prompt": "Hm?", "prompt_tokens_count": 3, "output_tokens_count": 4}
        | {"relative_timestamp": 0},
        {"prompt_tokens_count": 40, "output_tokens_count": 1, "relative_timestamp": 1.25},
    ]
    trace = bench.read("guidellm", lines(tmp_path / "g.jsonl", rows))
    assert [one.offset_us for one in trace.queries()] == [0, 1_250_000]
    assert [len((one.text or "").split()) for one in trace.documents()] == [40]
    out = bench.write("guidellm", trace, ".jsonl")
    assert rows_of(out) == rows
    same(trace, bench.read("guidellm", out))


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,0,109\r\n"
)


def test_azure(tmp_path: Path, bench: Any, same: Any) -> None:
    (tmp_path / "a.csv").write_text(AZURE, newline="")
    trace = bench.read("azure", tmp_path / "a.csv")
    assert [one.offset_us for one in trace.queries()] == [0, 4_314_579]
    assert list(trace.arrivals()) == [
        Arrival("r0000002", 0, APPEND, 0, 0, ("input-r0000002",)),
        Arrival("r0000002", 1, END, 0, 0),
        Arrival("r0000003", 0, END, 0, 0),
    ]
    out = bench.write("azure", trace, ".csv")
    assert out.read_bytes() == AZURE.encode()
    same(trace, bench.read("azure", out))


def test_bad_azure_rows(tmp_path: Path, bench: Any) -> None:
    bad = "yesterday,1,1\r\n2023-11-16 18:15:50.99,1,-1\r\n2023-11-16 18:15:50.x,1,1\r\n1,2\r\n"
    (tmp_path / "a.csv").write_text(AZURE + bad, newline="")
    log = ImportLog()
    bench.read("azure", tmp_path / "a.csv", log=log)
    assert (log.rows, log.bad, [one.line for one in log.listed]) == (6, 4, [4, 5, 6, 7])


BURSTGPT = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,,,ChatGPT,472,18,490,Conversation log\n"
    "45.5,9,1.25,GPT-4,10,0,10,API log\n"
)


def test_burstgpt(tmp_path: Path, bench: Any, same: Any) -> None:
    (tmp_path / "b.csv").write_text(BURSTGPT + "46,,,GPT-4,10,1,12,API log\n")
    log = ImportLog()
    trace = bench.read("burstgpt", tmp_path / "b.csv", log=log)
    assert [str(one.text) for one in log.listed] == ["Total tokens is 12; the sum is 11"]
    second = list(trace.queries())[1]
    assert (second.offset_us, second.meta["session_id"], second.meta["model"]) == (
        45_500_000,
        "9",
        "GPT-4",
    )
    out = bench.write("burstgpt", trace, ".csv")
    assert out.read_text() == BURSTGPT
    same(trace, bench.read("burstgpt", out))


def test_a_crawl_as_requests(bench: Any, trace_path: Path) -> None:
    from s2l.workloads.trace import Trace

    out = bench.write("mooncake", Trace.open(trace_path), ".jsonl")
    rows = rows_of(out)
    # Ready when the retrieval ended; two of the four never did.
    assert [(row["timestamp"], row["query_id"]) for row in rows] == [(6, "q-a"), (250.08, "q-b")]
    assert rows[0]["text_input"] == "alpha\nbéta 😀\nWhat is alpha?"
