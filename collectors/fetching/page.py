"""What a fetch gives, and what fetches."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

NowUs = Callable[[], int]
"""Microseconds of the caller's clock."""


def monotonic_us() -> int:
    """Microseconds of the monotonic clock: for a caller that has no clock of its own."""
    return time.monotonic_ns() // 1000


HTML_MIMES: Final = frozenset({"text/html", "application/xhtml+xml"})
PAGE_MIMES: Final = HTML_MIMES | {
    "text/plain",
    "text/markdown",
    "application/pdf",
    "application/json",
    "application/ld+json",
}
"""The types that text can be extracted from."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: ``url`` is where redirects led, ``charset`` what its header says (or None).

    ``first_byte_us`` and ``body_us`` are readings of the caller's clock: the headers were here,
    the whole body was here. Durations, summed over redirects: ``wait_us`` waiting for a turn at
    the site and between attempts, ``dns_us`` and ``connect_us`` (TLS included) for connections
    that were not there yet. ``validators`` are the headers for asking whether it has changed.
    """

    url: str
    mime: str
    charset: str | None
    body: bytes = field(repr=False)
    first_byte_us: int
    body_us: int
    wait_us: int = 0
    dns_us: int = 0
    connect_us: int = 0
    redirects: tuple[str, ...] = ()
    attempts: int = 1
    cached: bool = False
    rendered: bool = False
    validators: Mapping[str, str] = field(default_factory=dict)

    def after(self, earlier: "Fetched", redirects: tuple[str, ...]) -> "Fetched":
        """This page with the durations of one that led to it, and the way from there to here."""
        return replace(
            self,
            wait_us=earlier.wait_us + self.wait_us,
            dns_us=earlier.dns_us + self.dns_us,
            connect_us=earlier.connect_us + self.connect_us,
            redirects=redirects + self.redirects,
        )

    def meta(self, start_us: int) -> dict[str, Any]:
        """What an arrival's ``meta`` says of it; ``start_us`` is when it was asked for."""
        split = {"wait_us": self.wait_us, "dns_us": self.dns_us, "connect_us": self.connect_us}
        rare = {
            "redirects": list(self.redirects),
            "attempts": self.attempts if self.attempts > 1 else 0,
            "cached": self.cached,
            "rendered": self.rendered,
        }
        return {
            **split,
            "first_byte_us": self.first_byte_us - start_us,
            "fetch_us": self.body_us - start_us,
            **{name: value for name, value in rare.items() if value},
        }


class PageFetcher(Protocol):
    """Fetches pages; a retrying or a cached one wraps another."""

    async def fetch(
        self,
        url: str,
        now_us: NowUs,
        mimes: Collection[str] | None = PAGE_MIMES,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch ``url`` if its type is one of ``mimes`` (None: any), with more ``headers``.

        Raises:
            Failure: there is no such answer.
        """
        ...
