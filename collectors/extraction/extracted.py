"""What extraction finds in a page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Extracted:
    """The title and the main text of a page; both may be empty.

    ``meta`` tells how bytes became letters where that is not plain: see ``charset``.
    ``refresh_url`` is where the page sends its reader at once (as written in it), ``needs_script``
    that it looks as if its text comes by JavaScript, ``licence`` what the page names as its own.
    """

    title: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    refresh_url: str | None = None
    needs_script: bool = False
    licence: str = ""
