"""``site.json``: what is on a site, so that rebuilding it adds and never loses."""

import re
from pathlib import Path
from typing import Final

import msgspec

from s2l.replayer.run import RunError

SITE_FORMAT: Final = "s2l-site/1"
SITE_FILE: Final = "site.json"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


class SiteError(RunError):
    """A site that cannot be built or added to. Its text is one line."""


class DeliveryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """TTFT of one delivery in seconds; None where too few requests carry the percentile.

    planned = succeeded + failed + ``unsent``; sites of earlier versions count these as failed."""

    delivery: str
    succeeded: int
    planned: int
    unsent: int = 0
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None

    @property
    def failed(self) -> int:
        """Requests that were sent and did not succeed."""
        return self.planned - self.succeeded - self.unsent


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One run on the site. Its report is at ``runs/<id>/``, its trace's card at
    ``traces/<trace_id>/``. ``gain`` is the median of TTFT wait / stream. Figures are of the queries
    that were asked at the retrieval's end, or at the moment that ``asked_at`` names where none
    was."""

    id: str
    name: str
    created_utc: str
    trace_id: str
    trace_name: str
    model: str
    server: str
    rates_qps: list[float]
    queries: int
    verdict: str
    interrupted: bool
    deliveries: list[DeliveryFigures]
    gain: float | None = None
    gain_interval: tuple[float, float] | None = None
    exact_match: float | None = None
    asked_at: str | None = None


class TraceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One trace: ``sha256`` is its manifest's, empty where a run does not say. ``facts`` are label
    and text, empty where the trace itself was not at hand."""

    id: str
    name: str
    sha256: str
    facts: list[tuple[str, str]] = []


class SiteIndex(msgspec.Struct, frozen=True, kw_only=True):
    """All of a site. ``url`` is where it is published, where that is known."""

    format: str = SITE_FORMAT
    title: str = "Runs"
    url: str = ""
    runs: list[RunEntry] = []
    traces: list[TraceEntry] = []

    def encode(self) -> bytes:
        """The bytes of ``site.json``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def newest_first(self) -> list[RunEntry]:
        """The runs by the time they were recorded; those without one last."""
        by_id = sorted(self.runs, key=lambda run: run.id)
        return sorted(by_id, key=lambda run: run.created_utc, reverse=True)


def decode_index(data: bytes, where: str) -> SiteIndex:
    """The index in ``data``; ``where`` it comes from, for errors.

    Raises:
        SiteError: it is not an index, of another version, or names a page outside of the site.
    """
    try:
        head = msgspec.json.decode(data)
        found = head.get("format") if isinstance(head, dict) else None
        if found != SITE_FORMAT:
            raise SiteError(f"{where}: site format {found!r}; this version adds to {SITE_FORMAT}")
        index = msgspec.convert(head, SiteIndex)
    except msgspec.MsgspecError as error:
        raise SiteError(f"{where}: damaged: {error}") from None
    ids = [name for run in index.runs for name in (run.id, run.trace_id)]
    ids += [trace.id for trace in index.traces]
    if bad := next((one for one in ids if not _ID.fullmatch(one) or ".." in one), None):
        raise SiteError(f"{where}: {bad!r} is no name of a page")
    return index


def read_index(folder: Path) -> SiteIndex | None:
    """The index of a site's folder; None where the folder holds no site yet.

    Raises:
        SiteError: there is a page that is none of ours, or the index cannot be used.
    """
    file = folder / SITE_FILE
    if file.is_file():
        return decode_index(file.read_bytes(), str(file))
    if (folder / "index.html").exists():
        raise SiteError(f"{folder}: has an index.html and no {SITE_FILE}; name another folder")
    return None


def merged(before: SiteIndex, runs: list[RunEntry], traces: list[TraceEntry]) -> SiteIndex:
    """The index with these runs and traces added, or anew where they are there already.

    A trace keeps the facts that it had where this time it was not at hand.
    """
    new = {run.id: run for run in before.runs} | {run.id: run for run in runs}
    cards = {trace.id: trace for trace in before.traces}
    for trace in traces:
        if trace.facts or trace.id not in cards:
            cards[trace.id] = trace
    return msgspec.structs.replace(
        before, runs=[new[one] for one in sorted(new)], traces=[cards[one] for one in sorted(cards)]
    )


def slug(text: str) -> str:
    """A name that is safe as a folder and in an address; never empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "unnamed"
