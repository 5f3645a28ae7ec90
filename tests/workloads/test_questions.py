"""Question files, good and bad."""

import re
from pathlib import Path

import pytest

from s2l.workloads.errors import BadQuestions
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions


def test_all_forms(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    lines = [
        '\ufeff{"query": "A?", "answer": "a"}',
        "",
        '{"question": "B?", "answers": ["b", "β"], "topic": "x"}\r',
        '{"text": "C?", "query_id": "c"}',
        '{"text": "D?", "query_id": 12, "answers": null, "answer": "d"}',
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert read_questions(file) == [
        Query("q00001", "A?", ("a",)),
        Query("q00003", "B?", ("b", "β"), meta={"topic": "x"}),
        Query("c", "C?"),
        Query("12", "D?", ("d",)),
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "Input data was truncated"),
        ("[1]", 'not a JSON object; write {"query": "..."}'),
        ('{"ask": "?"}', "needs a text in one of query, question, text"),
        ('{"query": "  "}', "needs a text in one of"),
        ('{"query": 3}', "needs a text in one of"),
        ('{"query": "?", "answers": [1]}', "answers must be text or a list of texts"),
        ('{"query": "?", "answers": {}}', "answers must be text or a list of texts"),
        ('{"query": "?", "query_id": ""}', "query_id is ''; it must be text"),
        ('{"query": "?", "query_id": true}', "query_id is True; it must be text"),
        ('{"query": "?", "query_id": "first"}', "query_id 'first' is also on line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, text: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(f'{{"query": "fine?", "query_id": "first"}}\n{line}\n')
    with pytest.raises(BadQuestions, match=re.escape(f"{file}, line 2: {text}")) as caught:
        read_questions(file)
    assert "\n" not in str(caught.value)


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "binary").write_bytes(b"ab\xff")
    for name, text in (
        ("none", "No such file or directory"),
        ("", "Is a directory"),
        ("empty", "no questions"),
        ("binary", "not UTF-8 text (byte 2)"),
    ):
        with pytest.raises(BadQuestions, match=re.escape(text)):
            read_questions(tmp_path / name)
