"""From a fetched page to its main text. Runs in worker processes; see ``extractor``."""

from dataclasses import dataclass

import trafilatura
from trafilatura.metadata import extract_title


@dataclass(frozen=True, slots=True)
class Extracted:
    """The title and the main text of a page; both may be empty."""

    title: str
    text: str


def extract_text(body: bytes, mime: str, charset: str | None) -> Extracted:
    """The main text of a page, or what it says outside its frame where no main part is found.

    ``charset`` is what the HTTP header says; without it HTML is searched for its own.

    Raises:
        Exception: the page cannot be parsed.
    """
    content = _decoded(body, charset)
    if mime == "text/plain":
        text = content if isinstance(content, str) else content.decode(errors="replace")
        return Extracted("", text.strip())
    tree = trafilatura.load_html(content)
    if tree is None:
        return Extracted("", "")
    title = extract_title(tree) or ""
    text = trafilatura.extract(tree, favor_recall=True, include_comments=False)
    return Extracted(title.strip(), (text or trafilatura.html2txt(content)).strip())


def _decoded(body: bytes, charset: str | None) -> bytes | str:
    """Text if the header names a known encoding, else the bytes as they are."""
    if charset is None:
        return body
    try:
        return body.decode(charset, errors="replace")
    except LookupError:
        return body
