"""What is known of the right to a document: licence and robots.txt's answer, in its meta."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from s2l.workloads.document import Document

LICENCE: Final = "licence"
"""Key of a document's meta: the licence that its page or feed names, as written there."""

ROBOTS: Final = "robots"
"""Key of a document's meta: what robots.txt said when the document was fetched."""

ALLOWED: Final = "allowed"
NOT_ASKED: Final = "not_asked"
"""Values of ``ROBOTS``; what robots.txt disallows is not fetched, and is an arrival's status."""

UNKNOWN: Final = "unknown"
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class DocumentRights:
    """Documents by licence and by robots.txt's answer, most frequent first."""

    licences: dict[str, int]
    robots: dict[str, int]


def document_rights(documents: Iterable[Document]) -> DocumentRights:
    """Count a trace's documents; what does not say is ``unknown``."""
    licences: Counter[str] = Counter()
    robots: Counter[str] = Counter()
    for document in documents:
        licences[_said(document, LICENCE)] += 1
        robots[_said(document, ROBOTS)] += 1
    return DocumentRights(_most(licences), _most(robots))


def _said(document: Document, key: str) -> str:
    value = document.meta.get(key)
    return value if isinstance(value, str) and value else UNKNOWN


def _most(counts: Counter[str]) -> dict[str, int]:
    shown = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    rest = sum(n for _, n in shown[_MOST:])
    return dict(shown[:_MOST]) | ({"others": rest} if rest else {})
