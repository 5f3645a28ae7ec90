"""Takes emails, phone numbers, keys and tokens out of a trace, and counts them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.manifest import Manifest
from s2l.workloads.query import Query
from s2l.workloads.scrubbing.contact_detectors import check_regions, emails_in, phones_in
from s2l.workloads.scrubbing.finding import KEY, TOKEN, Finding, disjoint, replaced
from s2l.workloads.scrubbing.json_text import map_texts
from s2l.workloads.scrubbing.rewriting import Edits, Rewritten, Tell, one_by_one, rewrite
from s2l.workloads.scrubbing.secret_detectors import is_secret_parameter, secrets_in
from s2l.workloads.trace import Trace


class Scrubber:
    """Changes records; ``found`` counts by kind and place (``documents.text``), nothing else.

    Phone numbers without a country code are found as dialled in ``regions``.

    Raises:
        TraceError: no such region. ScrubberMissing: a package is not installed.
    """

    def __init__(self, regions: Sequence[str] = ()) -> None:
        check_regions(regions)
        self._regions = tuple(regions)
        self.found: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def text(self, text: str, place: str) -> str:
        """The text without what was found in it; addresses in it keep their form."""
        if "://" in text and not any(space in text for space in " \n\t"):
            return self.url(text, place)
        findings = [*emails_in(text), *phones_in(text, self._regions), *secrets_in(text)]
        findings += _linked_secrets(text)
        return self._replaced(text, findings, place, "[{}]")

    def url(self, url: str, place: str) -> str:
        """The address without credentials, secret parameters, emails and phone numbers."""
        return self._replaced(url, list(_url_findings(url, self._regions)), place, "REDACTED-{}")

    def _replaced(self, text: str, findings: list[Finding], place: str, form: str) -> str:
        if not findings:
            return text
        for one in disjoint(findings):
            self.found[one.kind][place] += 1
        return replaced(text, findings, form)

    def query(self, query: Query) -> Query:
        """The query with its text, answers and meta scrubbed."""
        return replace(
            query,
            text=self.text(query.text, "queries.text"),
            answers=tuple(self.text(one, "queries.answers") for one in query.answers),
            meta=self._meta(query.meta, "queries.meta"),
        )

    def document(self, document: Document) -> Document:
        """The document scrubbed. A changed text has a new hash: the old one could be used to try
        out what was removed; and a new id, which may follow from it."""
        shown = document.text
        text = None if shown is None else self.text(shown, "documents.text")
        url = self.url(document.url, "documents.url")
        title = self.text(document.title, "documents.title")
        meta = self._meta(document.meta, "documents.meta")
        if text == shown and url == document.url:
            return replace(document, title=title, meta=meta)
        if text is None:
            return replace(document, url=url, title=title, meta=meta)
        made = Document.of_text(
            url=url,
            title=title,
            text=text,
            mime=document.mime,
            fetched_utc=document.fetched_utc,
        )
        return replace(made, meta=meta)

    def arrival(self, arrival: Arrival) -> Arrival:
        """The arrival with its words and meta scrubbed."""
        if not arrival.detail and not arrival.meta:
            return arrival
        detail = self.text(arrival.detail, "arrivals.detail")
        return replace(arrival, detail=detail, meta=self._meta(arrival.meta, "arrivals.meta"))

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """What the manifest says of the capture, scrubbed."""
        scrubbed: dict[str, Any] = self._meta(options, "collector.options")
        return scrubbed

    def _meta(self, meta: Any, place: str) -> Any:
        return map_texts(meta, lambda text: self.text(text, place)) if meta else meta

    def report(self) -> dict[str, dict[str, int]]:
        """How many of each kind, by place, in the order of their names."""
        return {kind: dict(sorted(n.items())) for kind, n in sorted(self.found.items())}


def scrub(trace: Trace, path: Path, scrubber: Scrubber, tell: Tell = lambda done: None) -> Manifest:
    """Write the scrubbed trace to the new folder ``path``; see ``rewrite``."""
    edits = Edits(scrubber.query, one_by_one(scrubber.document), scrubber.arrival, scrubber.options)

    def change(result: Rewritten) -> dict[str, Any]:
        return {"what": "scrub", "documents": result.changed, "found": scrubber.report()}

    return rewrite(trace, path, edits, change, tell=tell)


def _linked_secrets(text: str) -> Iterator[Finding]:
    """Secret parameters of addresses inside a text."""
    at = text.find("://")
    while at >= 0:
        start = at
        while start > 0 and text[start - 1].isalpha():
            start -= 1
        end = at + 3
        while end < len(text) and not text[end].isspace() and text[end] not in "<>\"'`)]}":
            end += 1
        for one in _parameters(text[start:end]):
            yield Finding(start + one.start, start + one.end, one.kind)
        at = text.find("://", end)


def _url_findings(url: str, regions: Sequence[str]) -> Iterator[Finding]:
    yield from secrets_in(url)
    yield from _parameters(url)
    for start, end in _pieces(url):
        piece = url[start:end]
        plain = unquote_plus(piece)
        for one in [*emails_in(plain), *phones_in(plain, regions)]:
            # A piece that is written in escapes goes as a whole: places in it are not in the url.
            whole = plain != piece
            yield Finding(
                start if whole else start + one.start, end if whole else start + one.end, one.kind
            )


def _pieces(url: str) -> Iterator[tuple[int, int]]:
    """Where the parts between the separators of an address lie, from its path on."""
    begin = url.find("://") + 3 if "://" in url else 0
    start = min((at for mark in "/?#" if (at := url.find(mark, begin)) >= 0), default=len(url))
    start = start if begin else 0
    for at in range(start, len(url) + 1):
        if at == len(url) or url[at] in "/?&=#;":
            if at > start:
                yield start, at
            start = at + 1


def _parameters(url: str) -> Iterator[Finding]:
    """Credentials before the host, and values of secret parameters."""
    head, found, rest = url.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    if found and "@" in host:
        start = len(head) + 3
        yield Finding(start, start + len(host.rpartition("@")[0]), KEY)
    for mark in ("?", "#"):
        before, there, query = url.partition(mark)
        at = len(before) + 1
        for pair in query.partition("#")[0].split("&") if there else ():
            name, equals, value = pair.partition("=")
            if equals and is_secret_parameter(unquote(name), unquote(value)):
                yield Finding(at + len(name) + 1, at + len(pair), TOKEN)
            at += len(pair) + 1
