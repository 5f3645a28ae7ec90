"""Documents whose owners do not want them shared, dropped by the patterns of their addresses."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.errors import disk_error
from s2l.workloads.manifest import Manifest
from s2l.workloads.query import Query
from s2l.workloads.scrubbing.errors import BadTakedown
from s2l.workloads.scrubbing.json_text import map_texts, texts_in
from s2l.workloads.scrubbing.rewriting import Edits, Rewritten, Tell, one_by_one, rewrite
from s2l.workloads.trace import Trace

TAKEN_DOWN: Final = "taken_down"
_GONE: Final = "[taken down]"


@dataclass(frozen=True, slots=True)
class TakedownList:
    """Patterns of addresses.

    One with ``://`` is a whole address, in which ``*`` stands for any characters. Any other is a
    host, with its subdomains, or a host and the beginning of a path.
    """

    patterns: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "TakedownList":
        """One pattern a line; empty lines and those that begin with # do not count.

        Raises:
            BadTakedown: the file cannot be read, or holds no pattern or a strange one.
        """
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise disk_error(path, error, "; name a file of address patterns") from None
        except UnicodeDecodeError:
            raise BadTakedown(f"{path}: not UTF-8 text") from None
        kept = [line.strip() for line in lines]
        patterns = tuple(line for line in kept if line and not line.startswith("#"))
        for pattern in patterns:
            if not set(pattern) - set("*?./:") or any(map(str.isspace, pattern)):
                raise BadTakedown(
                    f"{path}: {pattern!r} is no pattern; write example.org, example.org/blog/ or "
                    "https://example.org/*.html"
                )
        if not patterns:
            raise BadTakedown(f"{path}: no patterns; write one a line, such as example.org")
        return cls(patterns)

    def matcher(self) -> "Matcher":
        """What tells which addresses are meant."""
        return Matcher(self.patterns)


class Matcher:
    """Tells which addresses the patterns mean."""

    def __init__(self, patterns: Sequence[str]) -> None:
        whole = [one for one in patterns if "://" in one]
        self._whole = [re.compile(translate(one.replace("[", "[[]"))) for one in whole]
        self._hashes = {f"sha256:{sha256(one.encode()).hexdigest()}" for one in whole}
        self._hosts = [_host_pattern(one) for one in patterns if "://" not in one]

    def matches(self, url: str) -> bool:
        """Whether the address, or the hash in its place, is one of those."""
        if url in self._hashes or any(one.match(url) for one in self._whole):
            return True
        place = _place(url) if self._hosts and "://" in url else ""
        return bool(place) and any(one.match(place) for one in self._hosts)

    def is_meant(self, document: Document) -> bool:
        """Whether its address is meant, or one that its meta names: where it was led from."""
        return self.matches(document.url) or any(map(self.matches, texts_in(document.meta)))

    def without(self, arrival: Arrival) -> Arrival:
        """The arrival without these addresses and what was said about them."""
        meta = _without(arrival.meta, self)
        detail = _GONE if any(map(self.matches, arrival.detail.split())) else arrival.detail
        return replace(arrival, meta=meta, detail=detail)

    def without_in(self, query: Query) -> Query:
        """The query without these addresses in its meta."""
        return replace(query, meta=_without(query.meta, self))

    def without_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """What the manifest says of the capture, without these addresses."""
        found: dict[str, Any] = _without(options, self)
        return found


def take_down(
    trace: Trace, path: Path, listed: TakedownList, tell: Tell = lambda done: None
) -> Manifest:
    """Write the trace without these documents to the new folder ``path``; see ``rewrite``.

    Raises:
        BadTakedown: the trace hides its addresses, and a pattern is not a whole one.
    """
    patterns = listed.patterns
    if trace.manifest.privacy == "hashed":
        for pattern in patterns:
            if "://" not in pattern or "*" in pattern or "?" in pattern:
                raise BadTakedown(
                    f"{trace.path}: its addresses are hashed; {pattern!r} must be a whole address"
                )
    matcher = listed.matcher()
    edits = Edits(
        query=matcher.without_in,
        documents=one_by_one(lambda one: None if matcher.is_meant(one) else one),
        arrival=matcher.without,
        options=matcher.without_options,
        status=TAKEN_DOWN,
    )

    def change(result: Rewritten) -> dict[str, Any]:
        return {
            "what": "takedown",
            "documents": result.dropped,
            "arrivals": result.emptied,
            "patterns": len(patterns),
        }

    return rewrite(trace, path, edits, change, tell=tell)


def _without(value: Any, matcher: Matcher) -> Any:
    """Objects that name an address that is meant lose every text, as titles and snippets."""
    if isinstance(value, dict):
        if any(isinstance(one, str) and matcher.matches(one) for one in value.values()):
            return {key: map_texts(one, lambda _: _GONE) for key, one in value.items()}
        return {key: _without(one, matcher) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, matcher) for one in value]
    return _GONE if isinstance(value, str) and matcher.matches(value) else value


def _place(url: str) -> str:
    """Host and path, without port and www."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return ""
    return f"{host}{parts.path or '/'}"


def _host_pattern(pattern: str) -> re.Pattern[str]:
    host, _, path = pattern.partition("/")
    inner = ".*".join(map(re.escape, host.lower().removeprefix("*.").split("*")))
    tail = ".*".join(map(re.escape, path.split("*")))
    return re.compile(rf"(?:[^/]*\.)?{inner}/{tail}")
