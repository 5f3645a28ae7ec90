"""Questions: JSONL, CSV, SimpleQA and SQuAD."""

import json
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.query import Query


def test_json_lines(tmp_path: Path, bench: Any, same: Any) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        '{"query": "A?", "answer": "a", "topic": "t"}\n{"text": "B?", "query_id": "b"}\n'
    )
    trace = bench.read("questions", file)
    assert list(trace.queries()) == [
        Query("q00001", "A?", ("a",), meta={"topic": "t"}),
        Query("b", "B?"),
    ]
    assert list(trace.arrivals()) == [
        Arrival("q00001", 0, ArrivalKind.END, 0, 0),
        Arrival("b", 0, ArrivalKind.END, 0, 0),
    ]
    same(trace, bench.read("questions", bench.write("questions", trace, ".jsonl")))


def test_csv(tmp_path: Path, bench: Any, same: Any) -> None:
    file = tmp_path / "q.csv"
    file.write_text('question,answers,query_id\n"A, or B?","[""a"", ""b""]",x\nC?,c,\n,none,\n')
    log = ImportLog()
    trace = bench.read("questions", file, log=log)
    assert list(trace.queries()) == [
        Query("x", "A, or B?", ("a", "b")),
        Query("q00003", "C?", ("c",)),
    ]
    assert [(one.line, one.text) for one in log.listed] == [
        (4, "needs a text in one of query, question, text")
    ]
    same(trace, bench.read("questions", bench.write("questions", trace, ".csv")))


def test_simpleqa_as_published(tmp_path: Path, bench: Any) -> None:
    file = tmp_path / "simple_qa_test_set.csv"
    file.write_text("metadata,problem,answer\n\"{'topic': 'Art'}\",Who?,Ann\n")
    (query,) = bench.read("questions", file).queries()
    assert (query.text, query.answers) == ("Who?", ("Ann",))


SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Rivers",
            "paragraphs": [
                {
                    "context": "The Rhine is long.",
                    "qas": [
                        {"id": "1", "question": "What is long?"}
                        | {"answers": [{"text": "The Rhine", "answer_start": 0}] * 2},
                        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
                        {"id": "1", "question": "Twice?", "answers": []},
                        {"id": "4", "answers": []},
                    ],
                },
                {"qas": []},
            ],
        }
    ],
}


def test_squad(tmp_path: Path, bench: Any, same: Any) -> None:
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(SQUAD))
    log = ImportLog()
    trace = bench.read("squad", file, log=log)
    assert (log.rows, log.bad) == (5, 3)
    assert list(trace.queries()) == [
        Query("1", "What is long?", ("The Rhine",)),
        Query("2", "Why?"),
    ]
    (document,) = trace.documents()
    assert (document.title, document.text) == ("Rivers", "The Rhine is long.")
    same(trace, bench.read("squad", bench.write("squad", trace, ".json")))


@pytest.mark.parametrize(("text", "error"), [("{", "not JSON"), ('{"a": 1}', "not SQuAD JSON")])
def test_not_squad(text: str, error: str, tmp_path: Path, bench: Any) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ImportFailed, match=error):
        bench.read("squad", tmp_path / "s.json")
