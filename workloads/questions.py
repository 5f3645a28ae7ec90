"""Reading questions from a JSONL file."""

from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.workloads.errors import BadQuestions
from s2l.workloads.query import Query

_TEXT_KEYS: Final = ("query", "question", "text")
_ANSWER_KEYS: Final = ("answers", "answer")
_KNOWN_KEYS: Final = frozenset({*_TEXT_KEYS, *_ANSWER_KEYS, "query_id"})


def read_questions(path: Path) -> list[Query]:
    """One query per line: ``query``, ``question`` or ``text``, and perhaps ``query_id`` and
    ``answer`` or ``answers``; other keys go to ``meta``. Without an id, line 7 is ``q00007``.

    Raises:
        BadQuestions: the file cannot be read, a line is wrong, an id occurs twice, or no
            question is in it.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise BadQuestions(f"{path}: {error.strerror}; name a JSONL file of questions") from None
    except UnicodeDecodeError as error:
        raise BadQuestions(f"{path}: not UTF-8 text (byte {error.start})") from None
    first_line: dict[str, int] = {}
    queries = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            query = question_of(_object(line), number)
        except (ValueError, msgspec.MsgspecError) as error:
            raise BadQuestions(f"{path}, line {number}: {error}") from None
        first = first_line.setdefault(query.query_id, number)
        if first != number:
            text = f"query_id {query.query_id!r} is also on line {first}"
            raise BadQuestions(f"{path}, line {number}: {text}")
        queries.append(query)
    if not queries:
        raise BadQuestions(f"{path}: no questions; each line needs one, as a JSON object")
    return queries


def _object(line: str) -> dict[str, Any]:
    row = msgspec.json.decode(line)
    if not isinstance(row, dict):
        raise ValueError('not a JSON object; write {"query": "..."}')
    return row


def question_of(row: dict[str, Any], number: int) -> Query:
    """The query in a row, by its keys; without an id, it gets one from its line's number.

    Raises:
        ValueError: it has no question, or its id or answers are not text.
    """
    text = next((row[key] for key in _TEXT_KEYS if key in row), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"needs a text in one of {', '.join(_TEXT_KEYS)}")
    meta = {key: value for key, value in row.items() if key not in _KNOWN_KEYS}
    return Query(_query_id(row, number), text, _answers(row), meta=meta)


def _query_id(row: dict[str, Any], number: int) -> str:
    found = row.get("query_id", f"q{number:05}")
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise ValueError(f"query_id is {found!r}; it must be text")
    return str(found)


def _answers(row: dict[str, Any]) -> tuple[str, ...]:
    found: Any = next((row[key] for key in _ANSWER_KEYS if row.get(key) is not None), [])
    answers = [found] if isinstance(found, str) else found
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        raise ValueError("answers must be text or a list of texts")
    return tuple(answers)
