"""The Atom feed of a site (RFC 4287)."""

import re
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from s2l.reports.moments import moment_text
from s2l.reports.site.index import RunEntry, SiteIndex
from s2l.reports.units import duration, times

_ATOM: Final = "http://www.w3.org/2005/Atom"
_LIMIT: Final = 50
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_DATE: Final = datetime(1970, 1, 1, tzinfo=UTC)


def feed(index: SiteIndex) -> bytes:
    """The newest runs. Ids do not depend on where the site is: moving it repeats nothing."""
    ElementTree.register_namespace("", _ATOM)
    runs = index.newest_first()[:_LIMIT]
    root = ElementTree.Element(f"{{{_ATOM}}}feed")
    _text(root, "title", index.title)
    _text(root, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f's2l-site:{index.title}')}")
    _text(root, "updated", max((_moment(run) for run in runs), default=_NO_DATE.isoformat()))
    _link(root, "self", f"{index.url}feed.xml")
    _link(root, "alternate", index.url or "./")
    author = ElementTree.SubElement(root, f"{{{_ATOM}}}author")
    _text(author, "name", "s2l")
    for run in runs:
        _entry(root, run, index.url)
    ElementTree.indent(root)
    found: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _entry(root: ElementTree.Element, run: RunEntry, url: str) -> None:
    entry = ElementTree.SubElement(root, f"{{{_ATOM}}}entry")
    _text(entry, "title", f"{run.name}: {run.trace_name}")
    _text(entry, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f's2l-run:{run.id}')}")
    _text(entry, "updated", _moment(run))
    _link(entry, "alternate", f"{url}runs/{run.id}/")
    _text(entry, "summary", summary_of(run))


def summary_of(run: RunEntry) -> str:
    """A run in one sentence, its verdict first."""
    said = [f"{run.verdict} run{', interrupted' if run.interrupted else ''}"]
    said += [part for part in (run.model, run.server) if part]
    if run.asked_at is not None:
        said.append(f"asked {moment_text(run.asked_at)}")
    if run.gain is not None:
        said.append(f"streaming gain {times(run.gain)} at the median")
    said += [
        f"median TTFT {one.delivery} {duration(one.ttft_p50_s)}"
        for one in run.deliveries
        if one.ttft_p50_s is not None
    ]
    return "; ".join(said) + "."


def _moment(run: RunEntry) -> str:
    """RFC 3339; the beginning of time for a run that does not say when it was recorded."""
    try:
        found = datetime.fromisoformat(run.created_utc)
    except ValueError:
        found = _NO_DATE
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}").text = _NO_XML.sub("\ufffd", text)


def _link(parent: ElementTree.Element, rel: str, href: str) -> None:
    ElementTree.SubElement(parent, f"{{{_ATOM}}}link", rel=rel, href=_NO_XML.sub("", href))
