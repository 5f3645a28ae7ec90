"""What a shared dataset consists of, as its readers see it."""

import importlib
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import decode_manifest
from s2l.workloads.query import Query
from s2l.workloads.scrubbing.changes import with_change
from s2l.workloads.scrubbing.concealing import conceal
from s2l.workloads.scrubbing.takedown import TakedownList, take_down
from s2l.workloads.sharing.packaging import package
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate


def test_every_file_is_in_the_manifest(ready: Trace, content: Any, trace_path: Path) -> None:
    assert validate(ready.path) == []
    files = content(ready.path)
    del files["manifest.json"]
    assert {name: sha256(data).hexdigest() for name, data in files.items()} == {
        entry.path: entry.sha256 for entry in ready.manifest.files
    }
    assert list(ready.retrievals()) == list(Trace.open(trace_path).retrievals())


def test_packing_again_changes_nothing(ready: Trace, trace_path: Path, tmp_path: Path) -> None:
    assert package(ready, tmp_path / "again").sha256 == ready.sha256
    assert package(Trace.open(trace_path), tmp_path / "anew").sha256 == ready.sha256
    with pytest.raises(TraceError, match="is there already"):
        package(ready, tmp_path / "again")


def test_the_card_tells_all(trace_path: Path, tmp_path: Path) -> None:
    fewer = tmp_path / "fewer"
    take_down(Trace.open(trace_path), fewer, TakedownList(("http://site/0",)))
    package(Trace.open(fewer), tmp_path / "ready", repo="me/small")
    card = (tmp_path / "ready" / "README.md").read_text()
    for part in (
        "![Shares of values up to x](shape.svg)",
        "| Chunks a query, chunks | 2 | 1.5 |",
        "| licence: unknown | 2 |",
        "- Taken out at their owners' wish: 1 document, by 1 address pattern.",
        "## Limits",
        "s2l dataset pull hf:me/small",
        'load_dataset("me/small", "queries")',
        "s2l replay hf:me/small",
    ):
        assert part in card
    assert "FOLDER" not in card
    assert (tmp_path / "ready" / "shape.svg").read_text().startswith("<svg")


def test_the_licence_of_a_page_is_no_markup(tmp_path: Path, small: Any) -> None:
    evil = "[free](https://evil.example) <img src=https://evil.example/i> | x"
    page = Document.of_text(url="http://site/", title="", text="t", meta={"licence": evil})
    with small.create(tmp_path / "evil") as writer:
        writer.add_query(Query("1", "?"))
        writer.add_document(page)
        writer.add_arrival(Arrival("1", 0, ArrivalKind.APPEND, 0, 1, (page.doc_id,)))
        writer.add_arrival(Arrival("1", 1, ArrivalKind.END, 1, 1))
        writer.finish()
    ready = package(Trace.open(tmp_path / "evil"), tmp_path / "ready")
    card = (ready.path / "README.md").read_text()
    inert = r"\[free\](https://evil.example) \<img src=https://evil.example/i\> \| x"
    assert f"| licence: {inert} | 1 |" in card
    assert evil not in card


def test_a_change_of_a_stranger_is_no_markup(trace_path: Path, tmp_path: Path) -> None:
    file = trace_path / "manifest.json"
    manifest = decode_manifest(file.read_bytes(), file)
    changed = with_change(manifest, {"what": "<img src=x> [a](https://evil.example)"})
    file.write_bytes(changed.encode())
    package(Trace.open(trace_path), tmp_path / "ready")
    card = (tmp_path / "ready" / "README.md").read_text()
    assert r"- \<img src=x\> \[a\](https://evil.example)." in card


def test_hidden_texts_have_a_card_too(trace_path: Path, tmp_path: Path) -> None:
    conceal(Trace.open(trace_path), tmp_path / "hidden", "hashed")
    package(Trace.open(tmp_path / "hidden"), tmp_path / "ready")
    card = (tmp_path / "ready" / "README.md").read_text()
    assert "| Duration of the retrieval, s | 2 |" in card
    assert "Tokens" not in card


def test_what_is_not_valid_is_not_packed(trace_path: Path, tmp_path: Path) -> None:
    (trace_path / "arrivals" / "more.parquet").write_bytes(b"")
    with pytest.raises(TraceError, match="not to be shared"):
        package(Trace.open(trace_path), tmp_path / "ready")


def test_datasets_loads_the_folder(ready: Trace, tmp_path: Path) -> None:
    datasets = importlib.import_module("datasets")
    for name, rows in (("queries", 4), ("arrivals", 8), ("documents", 3)):
        loaded = datasets.load_dataset(str(ready.path), name, cache_dir=str(tmp_path / "hf"))
        assert loaded["train"].num_rows == rows


def test_croissant_has_what_the_format_asks_for(ready: Trace) -> None:
    """The required properties of Croissant 1.0, by its specification."""
    described = json.loads((ready.path / "croissant.json").read_text())
    assert described["@type"] == "sc:Dataset"
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    required = {"name", "description", "license", "url", "datePublished", "version"}
    assert required - {"url"} <= set(described)
    hashes = {entry.path: entry.sha256 for entry in ready.manifest.files}
    files = [one for one in described["distribution"] if one["@type"] == "cr:FileObject"]
    assert {one["@id"]: one["sha256"] for one in files} == {
        path: digest for path, digest in hashes.items() if path.endswith(".parquet")
    }
    columns = [field["@id"] for one in described["recordSet"] for field in one["field"]]
    assert "arrivals/arrival_us" in columns
    assert len(columns) == len(set(columns)) == 23


def test_croissant_is_read_by_its_own_library(ready: Trace) -> None:
    mlcroissant = importlib.import_module("mlcroissant")
    dataset = mlcroissant.Dataset(str(ready.path / "croissant.json"))
    assert len(list(dataset.records("arrivals"))) == 8
    first = next(iter(dataset.records("queries")))
    assert first["queries/query_id"] in ("q-a", b"q-a")
