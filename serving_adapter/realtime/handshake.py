"""What is looked at before a socket is accepted: where it comes from, and for which model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from s2l.serving_adapter.realtime.engine import EngineInfo

SUBPROTOCOL: Final = "realtime"
"""The protocol on the socket by its name, which clients in browsers offer."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a socket is not accepted, as HTTP status and error object."""

    status: int
    code: str
    message: str
    param: str | None = None
    kind: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        """The API's error object."""
        error = {"type": self.kind, "code": self.code, "message": self.message, "param": self.param}
        return {"error": error}


def wrong_model(asked: str | None, info: EngineInfo) -> Refusal | None:
    """The refusal of a client that asks for a model that is not served."""
    if not asked or info.serves(asked):
        return None
    message = f"this server serves {info.model!r}, not {asked[:100]!r}"
    return Refusal(404, "model_not_found", message, param="model")


def foreign_page(origin: str | None, host: str, allowed: Sequence[str]) -> Refusal | None:
    """The refusal of a web page of another server, by the ``Origin`` that browsers send along.

    Browsers let every page open sockets to every server, unlike other requests, and leave it to the
    server. ``allowed`` are the origins that it trusts besides its own ``host``, ``*`` is all. A
    server that asks for a key need not ask this: pages cannot send one.
    """
    if origin is None or origin in allowed or "*" in allowed:
        return None
    if host and _host_of(origin) == host.lower():
        return None
    message = f"pages of {origin[:100]!r} may not open sessions; see --allowed-origins"
    return Refusal(403, "origin_not_allowed", message)


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # such as a bracket that is not closed
        return ""
