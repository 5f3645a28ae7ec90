"""What a trace shows of what was captured."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Final

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document


def _without_text(document: Document) -> Document:
    return replace(document, text=None)


def _hashed(document: Document) -> Document:
    url = f"sha256:{sha256(document.url.encode()).hexdigest()}"
    return replace(document, url=url, title="", text=None, meta={})


HIDE: Final[dict[str, Callable[[Document], Document]]] = {
    "full": lambda document: document,
    "urls": _without_text,
    "hashed": _hashed,
}
"""By privacy setting, the document as the trace shows it: all of it; all but the text; neither
text nor title nor meta, and a hash in place of the address."""


def shown_arrival(privacy: str, arrival: Arrival) -> Arrival:
    """The arrival as the trace shows it; ``hashed`` drops words that could name an address."""
    if privacy == "hashed" and (arrival.detail or arrival.meta):
        return replace(arrival, detail="", meta={})
    return arrival
