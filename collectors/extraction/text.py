"""From a page's bytes to its text, by its type. Runs in worker processes; see ``extractor``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.extraction.html import html_text
from s2l.collectors.extraction.json_text import json_text
from s2l.collectors.extraction.pdf import pdf_text
from s2l.collectors.extraction.plain import plain_text
from s2l.collectors.well_formed import readable

_EXTRACTORS: Final[dict[str, Callable[[bytes, str | None], Extracted]]] = {
    "text/html": html_text,
    "application/xhtml+xml": html_text,
    "text/plain": plain_text,
    "text/markdown": plain_text,
    "application/pdf": pdf_text,
    "application/json": json_text,
    "application/ld+json": json_text,
}
"""How to get text, by type; each function takes the body and the header's charset, or None."""

_MOST_TITLE: Final = 1000


def extract_text(body: bytes, mime: str, charset: str | None) -> Extracted:
    """The text of a page: well-formed, without control characters, whatever the page holds.

    ``charset`` is what the HTTP header says. Unknown types are read as HTML.

    Raises:
        Exception: the page cannot be parsed.
    """
    found = _EXTRACTORS.get(mime, html_text)(body, charset)
    text = readable(found.text)
    lone = text.count("\ufffd") - found.text.count("\ufffd")
    undecodable = found.meta.get("undecodable", 0) + lone
    return replace(
        found,
        title=" ".join(readable(found.title).split())[:_MOST_TITLE],
        text=text.strip(),
        licence=" ".join(readable(found.licence).split())[:_MOST_TITLE],
        meta={**found.meta, "undecodable": undecodable} if undecodable else found.meta,
    )
