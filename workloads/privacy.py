"""What a trace shows of what was captured."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.query import Query

_HASH: Final = "sha256:"
_SNIPPET: Final = "snippet"


def _without_text(document: Document) -> Document:
    return replace(document, text=None)


def _hashed(document: Document) -> Document:
    """What is a hash already stays one: a trace may be written anew any number of times."""
    url = document.url
    if not url.startswith(_HASH):
        url = f"{_HASH}{sha256(url.encode()).hexdigest()}"
    return replace(document, url=url, title="", text=None, meta={})


HIDE: Final[dict[str, Callable[[Document], Document]]] = {
    "full": lambda document: document,
    "urls": _without_text,
    "hashed": _hashed,
}
"""By privacy setting, the document as the trace shows it: all of it; all but the text; neither
text nor title nor meta, and a hash in place of the address."""


def shown_arrival(privacy: str, arrival: Arrival) -> Arrival:
    """The arrival as the trace shows it: ``urls`` drops what a search engine quotes of a page,
    ``hashed`` all words, as they could name an address."""
    if privacy == "hashed" and (arrival.detail or arrival.meta):
        return replace(arrival, detail="", meta={})
    if privacy == "urls" and arrival.meta:
        return replace(arrival, meta=_without(arrival.meta, lambda key, _: key == _SNIPPET))
    return arrival


def shown_query(privacy: str, query: Query) -> Query:
    """The query as the trace shows it: ``hashed`` drops the addresses in its meta."""
    if privacy == "hashed" and query.meta:
        return replace(query, meta=shown_options(privacy, query.meta))
    return query


def shown_options(privacy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest says of the capture: ``hashed`` drops the addresses in it."""
    if privacy != "hashed":
        return dict(options)
    found: dict[str, Any] = _without(
        dict(options), lambda key, value: _is_url(key) or _is_url(value)
    )
    return found


def _is_url(value: object) -> bool:
    return isinstance(value, str) and "://" in value


def _without(value: Any, unwanted: Callable[[str, Any], bool]) -> Any:
    """JSON less the entries that are not wanted; those of lists have no key."""
    if isinstance(value, dict):
        return {k: _without(v, unwanted) for k, v in value.items() if not unwanted(k, v)}
    if isinstance(value, list | tuple):
        return [_without(one, unwanted) for one in value if not unwanted("", one)]
    return value
