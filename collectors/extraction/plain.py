"""Plain text."""

from s2l.collectors.extraction.charset import decode
from s2l.collectors.extraction.extracted import Extracted


def plain_text(body: bytes, charset: str | None) -> Extracted:
    """The text as it is."""
    decoded = decode(body, charset)
    return Extracted("", decoded.text.strip(), decoded.meta())
