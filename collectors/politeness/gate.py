"""What a request waits for before it is sent: the site's permission, and its turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yarl import URL

from s2l.collectors.politeness.robots import Robots
from s2l.collectors.politeness.throttle import Throttle


class PoliteGate:
    """A ``Gate`` of fetchers: robots.txt where given, then the turn at the site.

    A site that has asked to be left alone for longer than ``longest_s`` is not waited for; nor is
    a crawl delay longer than that. Parts of a page are not ``paced``, see ``Throttle``.
    """

    def __init__(
        self,
        throttle: Throttle,
        robots: Robots | None = None,
        *,
        longest_s: float = 60.0,
        paced: bool = True,
    ) -> None:
        self._paced = paced
        self._throttle = throttle
        self._robots = robots
        self._longest_s = longest_s

    @asynccontextmanager
    async def turn(self, url: URL) -> AsyncIterator[None]:
        """See ``Gate``.

        Raises:
            Failure: robots.txt disallows it, or cannot be had; ``retry_later``.
        """
        site = site_of(url)
        self._throttle.check(site, self._longest_s)
        asked_s = await self._robots.delay_s(url) if self._robots else 0.0
        delay_s = min(asked_s, self._longest_s)
        async with self._throttle.turn(site, delay_s, paced=self._paced, longest_s=self._longest_s):
            yield


def site_of(url: URL) -> str:
    """Host and port."""
    return f"{url.host}:{url.port}"
