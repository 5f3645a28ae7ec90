"""Whose turn it is: requests under way at once, in all and per site, and the gap between them."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from s2l.collectors import failure
from s2l.collectors.failure import Failure


@dataclass(slots=True)
class _Site:
    slots: asyncio.Semaphore
    queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_s: float = 0.0
    held_until_s: float = 0.0
    waiting: int = 0

    def due_s(self, paced: bool) -> float:
        """When the next request may start, on the loop's clock."""
        return max(self.next_s, self.held_until_s) if paced else self.held_until_s

    def check(self, longest_s: float) -> None:
        """Raises Failure, ``retry_later``, where it is held for longer."""
        if (held_s := self.held_until_s - _now_s()) > longest_s:
            raise Failure(failure.RETRY_LATER, f"the site says in {held_s:.0f} s", final=True)


class Throttle:
    """Turns at sites; a site is a host and port. Of so many ``crawls`` that ask the same sites,
    each takes its share of the turns."""

    def __init__(self, *, concurrency: int, per_site: int, delay_s: float, crawls: int = 1) -> None:
        self._all = asyncio.Semaphore(concurrency // crawls)
        self._per_site = per_site // crawls
        self._delay_s = delay_s
        self._crawls = crawls
        self._sites: dict[str, _Site] = {}

    @asynccontextmanager
    async def turn(
        self,
        site: str,
        delay_s: float = 0.0,
        *,
        paced: bool = True,
        longest_s: float = math.inf,
    ) -> AsyncIterator[None]:
        """Wait for a turn at ``site``, in the order of asking, and hold it until left.

        ``delay_s`` is the site's own wish for the time between starts; the longer one counts.
        What belongs to a page that was waited for is not ``paced``: only the numbers count.

        Raises:
            Failure: ``retry_later``, once the site is held for longer than ``longest_s``.
        """
        state = self._site(site)
        state.waiting += 1
        try:
            if paced:
                async with state.queue:
                    await self._take(state, paced, longest_s)
                    state.next_s = _now_s() + max(delay_s, self._delay_s) * self._crawls
            else:
                await self._take(state, paced, longest_s)
        finally:
            state.waiting -= 1
        try:
            yield
        finally:
            self._give_back(state)

    def hold(self, site: str, seconds: float) -> None:
        """Start nothing at ``site`` for so long."""
        state = self._site(site)
        state.held_until_s = max(state.held_until_s, _now_s() + seconds)

    def check(self, site: str, longest_s: float) -> None:
        """Refuse a request that would have to wait for longer.

        Raises:
            Failure: ``retry_later``; nothing starts at ``site`` for more than ``longest_s``.
        """
        if (state := self._sites.get(site)) is not None:
            state.check(longest_s)

    def waiting(self) -> Mapping[str, int]:
        """How many requests wait for which site."""
        return {site: state.waiting for site, state in self._sites.items() if state.waiting}

    async def _take(self, state: _Site, paced: bool, longest_s: float) -> None:
        """Take a place at the site and one among all, at a moment when it may be asked."""
        while True:
            # Not with a place taken: a slow site must not keep the others waiting.
            while (left_s := state.due_s(paced) - _now_s()) > 0:
                state.check(longest_s)  # it may have been held since the request came here
                await asyncio.sleep(left_s)
            await state.slots.acquire()
            try:
                await self._all.acquire()
            except BaseException:
                state.slots.release()
                raise
            if state.due_s(paced) <= _now_s():
                return
            self._give_back(state)

    def _give_back(self, state: _Site) -> None:
        self._all.release()
        state.slots.release()

    def _site(self, site: str) -> _Site:
        state = self._sites.get(site)
        if state is None:
            state = self._sites[site] = _Site(asyncio.Semaphore(self._per_site))
        return state


def _now_s() -> float:
    return asyncio.get_running_loop().time()
