"""Full-text search over the demo site's pages."""

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from s2l.collectors.demo_site.pages import Page

_TOKEN: Final = re.compile(r"\w+")
_IDENTIFIER: Final = re.compile(r"\w+(?:\.\w+)+")
_STOP_TEXT: Final = """
a about an and are as at be by can do does for from give given has have how i if in into is it
its many my name of on one or python s that the their there this to used value was what when
where which who why will with you
"""
_STOP_WORDS: Final = frozenset(_STOP_TEXT.split())
_NAME_WEIGHT: Final = 8.0
_TEXT_WEIGHT: Final = 1.0
_SNIPPET_WORDS: Final = 24


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: where, and a few words around what matched."""

    path: str
    title: str
    snippet: str


class PageSearch:
    """A full-text index held in memory; ranks with BM25, names above text."""

    def __init__(self, pages: Iterable[Page]) -> None:
        # Python identifiers such as ensure_ascii are one token; dotted names are phrases.
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE page USING fts5(path UNINDEXED, title UNINDEXED, name, text, "
            "tokenize = \"porter unicode61 tokenchars '_'\")"
        )
        rows = ((page.path, page.title, page.name, page.text) for page in pages)
        self._db.executemany("INSERT INTO page VALUES (?, ?, ?, ?)", rows)

    def find(self, question: str, n: int) -> list[Hit]:
        """At most ``n`` pages that match any word of the question, best first."""
        match = fts_query(question)
        if not match:
            return []
        rows = self._db.execute(
            f"SELECT path, title, snippet(page, 3, '', '', ' ... ', {_SNIPPET_WORDS}) FROM page "
            f"WHERE page MATCH ? ORDER BY bm25(page, 0, 0, {_NAME_WEIGHT}, {_TEXT_WEIGHT}), path "
            "LIMIT ?",
            (match, n),
        )
        return [Hit(*row) for row in rows]

    def close(self) -> None:
        """Drop the index."""
        self._db.close()


def fts_query(question: str) -> str:
    """The question as an FTS5 expression: its words, and its dotted names as phrases, joined by OR.

    Only word characters get through, each term in quotes, so no text can be FTS5 syntax.
    """
    lowered = question.lower()
    names = [" ".join(_TOKEN.findall(name)) for name in _IDENTIFIER.findall(lowered)]
    words = [word for word in _TOKEN.findall(lowered) if word not in _STOP_WORDS]
    return " OR ".join(f'"{term}"' for term in dict.fromkeys(names + words))
