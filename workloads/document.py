"""A piece of retrieved text and where it came from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """One retrieved text. ``text`` is None when the trace's privacy setting hides it.

    ``text_sha256`` (hex, of the UTF-8 text) and ``n_chars`` (code points) describe the text even
    where it is hidden. ``fetched_utc`` is ISO 8601.
    """

    doc_id: str
    url: str
    title: str
    text: str | None
    text_sha256: str
    n_chars: int
    mime: str = "text/html"
    fetched_utc: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_text(
        cls,
        *,
        url: str,
        title: str,
        text: str,
        mime: str = "text/html",
        fetched_utc: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> "Document":
        """A document whose id follows from its address and text, so that equal ones are one."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        doc_id = hashlib.sha256(f"{url}\n{digest}".encode()).hexdigest()[:16]
        n_chars = len(text)
        return cls(doc_id, url, title, text, digest, n_chars, mime, fetched_utc, meta or {})
