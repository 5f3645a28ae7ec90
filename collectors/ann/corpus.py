"""Reads the documents that are to be searched, from any of four kinds of source."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.well_formed import well_formed
from s2l.workloads.document import Document
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.schema import QUERIES
from s2l.workloads.trace import Trace
from s2l.workloads.wal import WAL

ID_KEYS: Final = ("doc_id", "id", "_id")
TEXT_KEYS: Final = ("text", "content", "contents", "body")
TEXT_SUFFIXES: Final = frozenset({".txt", ".md", ".rst"})
_KINDS: Final = "a .jsonl or .parquet file, a folder of text files, or a trace"


def read_corpus(path: Path) -> list[Document]:
    """All documents with text, in the source's order.

    JSONL and Parquet rows have ``text`` (or ``content``, ``contents``, ``body``), and perhaps
    ``doc_id`` (or ``id``, ``_id``), ``title`` and ``url``. Text files are taken from the whole
    tree below the folder, in the order of their paths. A document without an id gets one that
    follows from its place and its text.

    Raises:
        AnnError: nothing there, an unknown kind, a row that is wrong, an id that occurs twice,
            or no text at all.
        TraceError: a damaged or unfinished trace.
    """
    documents: list[Document] = []
    places: dict[str, str] = {}
    for place, document in _reader(path)(path):
        first = places.setdefault(document.doc_id, place)
        if first != place:
            raise AnnError(f"{path}: id {document.doc_id!r} is at {first} and again at {place}")
        documents.append(document)
    if not documents:
        raise AnnError(f"{path}: no documents with text in it; give {_KINDS}")
    return documents


Placed = tuple[str, Document]
"""A document, and words for where in the source it is."""


def _reader(path: Path) -> Callable[[Path], Iterable[Placed]]:
    if not path.exists():
        raise AnnError(f"{path}: no such file or folder; give {_KINDS}")
    if path.is_dir():
        return _from_trace if _is_trace(path) else _from_folder
    readers = {".jsonl": _from_jsonl, ".ndjson": _from_jsonl, ".parquet": _from_parquet}
    if path.suffix.lower() not in readers:
        raise AnnError(f"{path}: cannot be read as a corpus; give {_KINDS}")
    return readers[path.suffix.lower()]


def _is_trace(path: Path) -> bool:
    """Also an unfinished one, which opening then says."""
    return any((path / name).exists() for name in (MANIFEST, WAL, f"{QUERIES.name}.parquet"))


def _from_trace(path: Path) -> Iterator[Placed]:
    for number, document in enumerate(Trace.open(path).documents()):
        if document.text is None:
            raise AnnError(f"{path}: its texts are hidden; give a trace captured with its texts")
        if document.text.strip():
            yield f"document {number}", document


def _from_folder(path: Path) -> Iterator[Placed]:
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() not in TEXT_SUFFIXES or not file.is_file():
            continue
        name = file.relative_to(path).as_posix()
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise AnnError(f"{file}: not UTF-8 text (byte {error.start})") from None
        except OSError as error:
            raise AnnError(f"{file}: {error.strerror}") from None
        if text.strip():
            yield name, _document({"doc_id": name, "text": text, "title": file.stem}, name)


def _from_jsonl(path: Path) -> Iterator[Placed]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield from _placed(_decoded(path, number, line), path, f"line {number}")
    except OSError as error:
        raise AnnError(f"{path}: {error.strerror}") from None


def _decoded(path: Path, number: int, line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AnnError(f"{path}, line {number}: not JSON: {error}") from None


def _from_parquet(path: Path) -> Iterator[Placed]:
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            known = {*ID_KEYS, *TEXT_KEYS, "title", "url"}
            columns = [name for name in file.schema_arrow.names if name in known]
            for batch in file.iter_batches(columns=columns):
                for value in batch.to_pylist():
                    yield from _placed(value, path, f"row {row}")
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise AnnError(f"{path}: not a Parquet file: {' '.join(str(error).split())}") from None


def _placed(row: Any, path: Path, place: str) -> Iterator[Placed]:
    try:
        document = _document(row, f"{path.name}#{place.replace(' ', '')}")
    except ValueError as error:
        raise AnnError(f"{path}, {place}: {error}") from None
    if document.text:
        yield place, document


def _document(row: Any, default_url: str) -> Document:
    if not isinstance(row, Mapping):
        raise ValueError('not an object; write {"text": "..."}')
    text = next((row[key] for key in TEXT_KEYS if row.get(key) is not None), None)
    if not isinstance(text, str):
        raise ValueError(f"needs a text in one of {', '.join(TEXT_KEYS)}")
    url, title = (well_formed(str(row.get(key) or "")) for key in ("url", "title"))
    found = Document.of_text(
        url=url or default_url,
        title=title,
        text=well_formed(text) if text.strip() else "",
        mime="text/plain",
    )
    given = next((row[key] for key in ID_KEYS if row.get(key) is not None), found.doc_id)
    if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
        raise ValueError(f"its id is {given!r}; it must be text")
    return replace(found, doc_id=well_formed(str(given)))
