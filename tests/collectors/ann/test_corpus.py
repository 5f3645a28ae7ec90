import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s2l.collectors.ann.corpus import read_corpus
from s2l.collectors.ann.errors import AnnError
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace, UnfinishedTrace
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter
from s2l.workloads.wal import WAL


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def trace(path: Path, *texts: str, privacy: str = "full") -> Path:
    made_by = Collector("crawl", "1")
    with TraceWriter.create(
        path, name="t", collector=made_by, licence="x", privacy=privacy
    ) as writer:
        writer.add_query(Query("q", "?"))
        for i, text in enumerate(texts):
            writer.add_document(Document.of_text(url=f"http://h/{i}", title="T", text=text))
        writer.add_arrival(Arrival("q", 0, ArrivalKind.END, 0, 1))
        writer.finish()
    return path


def test_jsonl(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "c.jsonl",
        {"id": 7, "contents": "seven", "title": "Seven", "url": "http://h/7", "more": 1},
        {"text": "no id"},
        {"doc_id": "blank", "text": "  "},
    )
    first, second = read_corpus(path)
    assert (first.doc_id, first.text, first.title, first.url) == (
        "7",
        "seven",
        "Seven",
        "http://h/7",
    )
    assert second.url == "c.jsonl#line2"
    assert second == read_corpus(path)[1]  # an id that follows from place and text


def test_parquet(tmp_path: Path) -> None:
    table = pa.table({"_id": ["a", "b"], "body": ["one", "two"], "other": [1, 2]})
    pq.write_table(table, tmp_path / "c.parquet")
    assert [(d.doc_id, d.text) for d in read_corpus(tmp_path / "c.parquet")] == [
        ("a", "one"),
        ("b", "two"),
    ]


def test_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.md").write_text("bee")
    (tmp_path / "a.txt").write_text("\ufeffay")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "c.png").write_bytes(b"\x89PNG")
    assert [(d.doc_id, d.text) for d in read_corpus(tmp_path)] == [
        ("a.txt", "ay"),
        ("deep/b.md", "bee"),
    ]


def test_trace(tmp_path: Path) -> None:
    path = trace(tmp_path / "t", "one", "two")
    assert sorted(d.text or "" for d in read_corpus(path)) == ["one", "two"]


def test_hidden_and_unfinished_traces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnError, match="texts are hidden"):
        read_corpus(trace(tmp_path / "t", "one", privacy="hashed"))
    path = trace(tmp_path / "u", "one")
    (path / "manifest.json").unlink()
    with pytest.raises(NotATrace, match="not a trace"):
        read_corpus(path)
    (path / WAL).mkdir()
    with pytest.raises(UnfinishedTrace, match="s2l dataset recover"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}],
            "'a' is at line 1 and again at line 2",
        ),
        ([{"title": "x"}], "line 1: needs a text in one of text, content"),
        ([{"text": 3}], "line 1: needs a text"),
        (["word"], "line 1: not an object"),
        ([{"id": "", "text": "x"}], "line 1: its id is ''; it must be text"),
        ([], "no documents with text in it"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(AnnError, match=message):
        read_corpus(jsonl(tmp_path / "c.jsonl", *rows))


def test_what_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(AnnError, match="no such file or folder; give a"):
        read_corpus(tmp_path / "none")
    for name, content, message in (
        ("c.csv", b"a,b", "cannot be read as a corpus"),
        ("c.jsonl", b"{", "line 1: not JSON"),
        ("c.parquet", b"PAR1", "not a Parquet file"),
        ("d.jsonl", b'{"text": "\xff"}', "line 1: not JSON"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AnnError, match=message):
            read_corpus(tmp_path / name)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(AnnError, match=r"latin.txt: not UTF-8 text \(byte 3\)"):
        read_corpus(tmp_path / "x")
