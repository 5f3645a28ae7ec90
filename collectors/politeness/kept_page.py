"""A page in a file: the sha256 of the rest, one line of JSON, then the body."""

import hashlib
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from s2l.collectors.fetching.page import Fetched


@dataclass(frozen=True, slots=True)
class KeptPage:
    """What a file says of its page. Times are since the request."""

    asked: str
    url: str
    mime: str
    charset: str | None
    first_byte_us: int
    body_us: int
    dns_us: int
    connect_us: int
    redirects: tuple[str, ...]
    saved_s: float
    validators: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, page: Fetched, asked: str, start_us: int, saved_s: float) -> "KeptPage":
        """Of a page that was asked for as ``asked`` at ``start_us``; its waiting is left out."""
        since_us = start_us + page.wait_us
        return cls(
            asked=asked,
            url=page.url,
            mime=page.mime,
            charset=page.charset,
            first_byte_us=max(0, page.first_byte_us - since_us),
            body_us=max(0, page.body_us - since_us),
            dns_us=page.dns_us,
            connect_us=page.connect_us,
            redirects=page.redirects,
            saved_s=saved_s,
            validators=dict(page.validators),
        )

    def page(self, body: bytes, first_byte_us: int, body_us: int) -> Fetched:
        """The page again, at other times."""
        return Fetched(
            *(self.url, self.mime, self.charset, body, first_byte_us, body_us),
            redirects=self.redirects,
            cached=True,
            validators=self.validators,
        )


def read_kept(path: Path, url: str) -> tuple[KeptPage, bytes] | None:
    """What is kept; None where nothing is, or anything else than all that was written here."""
    try:
        digest, _, rest = path.read_bytes().partition(b"\n")
        if digest != _digest(rest):
            return None
        head, _, body = rest.partition(b"\n")
        kept = msgspec.json.decode(head, type=KeptPage)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return (kept, body) if kept.asked == url else None


def write_kept(path: Path, head: KeptPage, body: bytes) -> None:
    """Under its name only when it is whole. Not synced: what a power loss cuts off is seen by
    its digest, and asked for again."""
    rest = msgspec.json.encode(asdict(head)) + b"\n" + body
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(rest) + b"\n")
            file.write(rest)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
