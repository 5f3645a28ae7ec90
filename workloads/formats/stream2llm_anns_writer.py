"""Writing traces as Stream2LLM vector search traces."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from s2l.workloads.arrival import Arrival
from s2l.workloads.context import contexts
from s2l.workloads.errors import ExportFailed, disk_error
from s2l.workloads.formats.base import ExportOptions
from s2l.workloads.formats.delays import write_delays
from s2l.workloads.formats.ready_requests import text_of_document
from s2l.workloads.formats.stream2llm_anns import COLUMNS, RESULTS
from s2l.workloads.formats.stream2llm_crawl import DELAYS
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

LOSES: Final = (
    "answers, urls and titles, search rows and failures (the context as it was is repeated), how "
    "long a retrieval went on after its last window, meta but the iterations"
)
_SAFE: Final = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE_ID: Final = re.compile(r"""[(),"'\s]|^$""")
_SHARD_BYTES: Final = 64 << 20


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """A folder as the artifact's: ``res/``, the map, the corpus in shards, and the delays."""
    at_start = _arrival(trace, options) == "start"
    try:
        (out / RESULTS).mkdir(parents=True, exist_ok=True)
        entries: dict[str, dict[str, str]] = {}
        offsets: list[int] = []
        for retrieval in trace.retrievals():
            if not retrieval.finished:
                continue
            name = _file_name(retrieval.query.query_id, len(offsets))
            _write_windows(out / RESULTS / name, retrieval, at_start)
            query = retrieval.query
            entries[query.query_id] = {"query": query.text, "trace_file": f"{RESULTS}/{name}"}
            offsets.append(query.offset_us)
            options.tell(len(offsets))
        (out / "query_trace_map_5k.json").write_bytes(msgspec.json.encode(entries))
        _write_corpus(trace, out)
    except OSError as error:
        raise disk_error(out, error) from None
    if any(offsets):
        write_delays(out / DELAYS, offsets)
    return len(offsets)


def _arrival(trace: Trace, options: ExportOptions) -> str:
    found = options.arrival or trace.manifest.collector.options.get("arrival")
    return "start" if found == "start" else "end"


def _file_name(query_id: str, place: int) -> str:
    safe = query_id if _SAFE.fullmatch(query_id) else f"n{place}"
    return f"_L10000_W8_query{safe}_pipeline_trace.csv"


def _write_windows(file: Path, retrieval: Retrieval, at_start: bool) -> None:
    with file.open("x", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened, lineterminator="\n")
        table.writerow(COLUMNS)
        for start_us, end_us, arrival, pool in _windows(retrieval, at_start):
            first = arrival.meta.get("start_iteration", arrival.seq)
            last = arrival.meta.get("end_iteration", arrival.seq)
            table.writerow((start_us, end_us, first, last, f"({','.join(pool)})"))


def _windows(
    retrieval: Retrieval, at_start: bool
) -> Iterator[tuple[int, int, Arrival, tuple[str, ...]]]:
    """Start, end, arrival and context. A window that began with an arrival ends with the next."""
    steps = list(contexts(retrieval.arrivals))
    ends = [arrival.arrival_us for arrival in retrieval.arrivals[1:]]
    for (arrival, pool), next_us in zip(steps, ends, strict=True):
        if bad := next((doc for doc in pool if _UNSAFE_ID.search(doc)), None):
            raise ExportFailed(f"document id {bad!r} cannot be in a list (id,id,...)")
        if at_start:
            yield arrival.arrival_us, arrival.meta.get("window_end_us", next_us), arrival, pool
        else:
            yield arrival.start_us, arrival.arrival_us, arrival, pool


def _write_corpus(trace: Trace, out: Path) -> None:
    number = 0
    texts = _pairs(trace)
    pair = next(texts, None)
    while pair is not None or number == 0:
        with (out / f"retrieved_corpus_content.part.{number}.json").open("xb") as file:
            pair = _write_shard(file, pair, texts)
        number += 1


def _pairs(trace: Trace) -> Iterator[bytes]:
    for document in trace.documents():
        text = text_of_document(document)
        yield msgspec.json.encode(document.doc_id) + b": " + msgspec.json.encode(text)


def _write_shard(file: BinaryIO, pair: bytes | None, texts: Iterator[bytes]) -> bytes | None:
    """Write pairs until the shard is full; the one that begins the next, if there is one."""
    separator, size = b"{\n", 0
    while pair is not None and size < _SHARD_BYTES:
        file.write(separator + pair)
        separator, size = b",\n", size + len(pair)
        pair = next(texts, None)
    file.write(b"{}\n" if size == 0 else b"\n}\n")
    return pair
