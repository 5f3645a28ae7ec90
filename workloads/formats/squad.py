"""SQuAD JSON: questions with the paragraph that answers them as their context."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import ImportFailed, disk_error
from s2l.workloads.formats.base import PLAIN, ExportOptions, ImportOptions, Record
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import ready_requests, text_of_document
from s2l.workloads.formats.request_files import RowIds
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace

LOSES: Final = (
    "times, urls, failures, meta, and where in the paragraph an answer is; several documents "
    "become one paragraph"
)


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a question; its paragraph is there at once. A row is a question."""
    log.expect(source)
    log.files += 1
    ids = RowIds()
    for number, title, paragraph in _paragraphs(source):
        try:
            context, questions = _parts(paragraph)
        except ValueError as error:
            log.rows += 1
            log.reject(source, 0, f"paragraph {number}: {error}")
            continue
        document = Document.of_text(url="", title=title, text=context, mime=PLAIN)
        yield document
        for found in questions:
            log.rows += 1
            try:
                query = _query(found, ids)
            except ValueError as error:
                log.reject(source, 0, f"paragraph {number}: {error}")
            else:
                yield from _records(query, document)
    log.advance(source.stat().st_size)


def _paragraphs(source: Path) -> Iterator[tuple[int, str, Any]]:
    try:
        found = msgspec.json.decode(source.read_bytes())
        articles = found["data"]
        number = 0
        for article in articles:
            for paragraph in article["paragraphs"]:
                number += 1
                yield number, str(article.get("title", "")), paragraph
    except OSError as error:
        raise disk_error(source, error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFailed(f"{source}: not JSON: {error}") from None
    except (TypeError, KeyError, AttributeError):
        raise ImportFailed(f"{source}: not SQuAD JSON; it needs data[].paragraphs[]") from None


def _parts(paragraph: Any) -> tuple[str, list[Any]]:
    if not isinstance(paragraph, dict) or not isinstance(paragraph.get("context"), str):
        raise ValueError("its context must be text")
    questions = paragraph.get("qas")
    if not isinstance(questions, list):
        raise ValueError("its qas must be a list")
    return paragraph["context"], questions


def _query(found: Any, ids: RowIds) -> Query:
    if not isinstance(found, dict) or not isinstance(found.get("question"), str):
        raise ValueError("a question must be text")
    answers = found.get("answers", [])
    if not isinstance(answers, list) or not all(_has_text(one) for one in answers):
        raise ValueError(f"answers of {found.get('id')!r} must each have their text")
    query_id = str(found.get("id", ""))
    ids.take(query_id)
    return Query(query_id, found["question"], tuple(dict.fromkeys(one["text"] for one in answers)))


def _has_text(answer: Any) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("text"), str)


def _records(query: Query, document: Document) -> Iterator[Record]:
    yield query
    yield Arrival(query.query_id, 0, ArrivalKind.APPEND, 0, 0, (document.doc_id,))
    yield Arrival(query.query_id, 1, ArrivalKind.END, 0, 0)


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One article a query; its whole context is the paragraph."""
    count = 0
    try:
        with out.open("wb") as file:
            file.write(b'{"version": "1.1", "data": [')
            for request in ready_requests(trace, options):
                title = request.documents[0].title if request.documents else ""
                context = "\n".join(map(text_of_document, request.documents))
                article = _article(request.query, title, context)
                file.write((b",\n" if count else b"\n") + msgspec.json.encode(article))
                count += 1
            file.write(b"\n]}\n")
    except OSError as error:
        raise disk_error(out, error) from None
    return count


def _article(query: Query, title: str, context: str) -> dict[str, Any]:
    answers = [{"text": text, "answer_start": context.find(text)} for text in query.answers]
    question = {"id": query.query_id, "question": query.text, "answers": answers}
    return {"title": title, "paragraphs": [{"context": context, "qas": [question]}]}
