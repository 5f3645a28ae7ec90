"""Whose turn it is: requests under way at once, in all and per site, and the gap between them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


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
        self, site: str, delay_s: float = 0.0, *, paced: bool = True
    ) -> AsyncIterator[None]:
        """Wait for a turn at ``site``, in the order of asking, and hold it until left.

        ``delay_s`` is the site's own wish for the time between starts; the longer one counts.
        What belongs to a page that was waited for is not ``paced``: only the numbers count.
        """
        state = self._site(site)
        state.waiting += 1
        try:
            if paced:
                async with state.queue:
                    await self._take(state, paced)
                    state.next_s = _now_s() + max(delay_s, self._delay_s) * self._crawls
            else:
                await self._take(state, paced)
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

    def held_s(self, site: str) -> float:
        """For how many seconds more nothing starts at ``site``; below 0: it may."""
        state = self._sites.get(site)
        return state.held_until_s - _now_s() if state else 0.0

    def waiting(self) -> Mapping[str, int]:
        """How many requests wait for which site."""
        return {site: state.waiting for site, state in self._sites.items() if state.waiting}

    async def _take(self, state: _Site, paced: bool) -> None:
        """Take a place at the site and one among all, at a moment when it may be asked."""
        while True:
            # Not with a place taken: a slow site must not keep the others waiting.
            while (left_s := state.due_s(paced) - _now_s()) > 0:
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
