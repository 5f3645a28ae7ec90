"""How a crawl behaves towards the sites that it asks."""

import re
from dataclasses import dataclass, field
from typing import Final

from s2l.collectors.fetching.fetcher import USER_AGENT

_CONTACT: Final = re.compile(r"https?://[\x21-\x7e]+|[^@\s()]+@[^@\s()]+")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``attempts`` in all; the wait before the n-th repeat is ``backoff_s`` · 2^(n-1), at most
    ``longest_s``, and half of it to all of it by chance. A server that asks to be left alone for
    longer than ``longest_s`` is not asked again."""

    attempts: int = 3
    backoff_s: float = 1.0
    longest_s: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}: give 1 or more")
        if not (self.backoff_s >= 0 and self.longest_s >= 0):
            raise ValueError("waits between attempts: give 0 or more seconds")


@dataclass(frozen=True, slots=True)
class Manners:
    """``concurrency`` requests at once in all, ``per_site`` at one host and port, whose starts
    are ``delay_s`` apart, or what its robots.txt asks for if that is longer (a minute at most).

    ``contact`` is a web or mail address at which site owners reach whoever crawls. ``crawls`` keep
    these manners together, of which this is one: it takes an equal share of the numbers, and lets
    as many times as long pass between starts.

    Raises:
        ValueError: a number or the contact is none that can be meant.
    """

    contact: str | None = None
    concurrency: int = 64
    per_site: int = 2
    delay_s: float = 0.5
    obey_robots: bool = True
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    crawls: int = 1

    def __post_init__(self) -> None:
        for name in ("crawls", "concurrency", "per_site"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: give 1 or more")
        for name in ("concurrency", "per_site"):
            if getattr(self, name) < self.crawls:
                text = f"{name} is {getattr(self, name)}: too few requests at once for"
                raise ValueError(f"{text} {self.crawls} crawls, each of which makes one at least")
        if not self.delay_s >= 0:
            raise ValueError(f"delay_s is {self.delay_s}: give 0 or more")
        if self.contact is not None and _CONTACT.fullmatch(self.contact) is None:
            raise ValueError(f"contact {self.contact!r}: give a web or mail address")

    @classmethod
    def at_home(cls) -> "Manners":
        """For a site of one's own: no waiting, no robots.txt, each request once."""
        return cls(
            concurrency=1024,
            per_site=1024,
            delay_s=0.0,
            obey_robots=False,
            retry=RetryPolicy(attempts=1),
        )

    @property
    def user_agent(self) -> str:
        """The name under which sites are asked; robots.txt knows it by its first word."""
        return f"{USER_AGENT} (+{self.contact})" if self.contact else USER_AGENT
