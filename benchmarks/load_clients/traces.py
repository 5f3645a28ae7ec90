"""The traces that the load generator is measured with."""

from pathlib import Path

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter


def write_trace(path: Path, *, queries: int, chunks: int, words: int, gap_us: int) -> Path:
    """Queries whose context comes in so many chunks of so many words, one each ``gap_us``."""
    collector = Collector("benchmark", "1", {}, 0)
    with TraceWriter.create(path, name=path.name, collector=collector, licence="CC0-1.0") as writer:
        for number in range(queries):
            _write_query(writer, f"q{number}", chunks, words, gap_us)
        writer.finish()
    return path


def _write_query(writer: TraceWriter, query_id: str, chunks: int, words: int, gap_us: int) -> None:
    writer.add_query(Query(query_id, f"What is {query_id}?"))
    for seq in range(chunks):
        text = " ".join(f"{query_id}.{seq}.{i}" for i in range(words))
        document = Document.of_text(url=f"mem://{query_id}/{seq}", title="t", text=text)
        writer.add_document(document)
        ids = (document.doc_id,)
        at_us = (seq + 1) * gap_us
        writer.add_arrival(Arrival(query_id, seq, ArrivalKind.APPEND, at_us, at_us, ids))
    end_us = chunks * gap_us
    writer.add_arrival(Arrival(query_id, chunks, ArrivalKind.END, end_us, end_us))
