"""Notices when nothing moves that should, and makes room until it does."""

import asyncio
from typing import Final, Protocol

WATCHDOG_S: Final = 10.0
"""So long may all that is in the engine stand still, and context without room wait for that of
contexts which do not grow."""

TICK_S: Final = 0.1
"""How often is looked. Admission itself acts at once on what happens to its own prompts; this is
for what it is not told: requests that come by other doors begin and end."""


class Watched(Protocol):
    """What the watchdog looks at, and what it can do; times are those of the event loop."""

    def has_claims(self) -> bool:
        """Whether there is anything to watch."""

    def stalled(self, before_s: float, bound_s: float) -> bool:
        """Whether what is in the engine stands still since then, ``bound_s`` ago."""

    def held_back(self, before_s: float) -> bool:
        """Whether context that grew lately finds no room since then."""

    def unblock(self, before_s: float) -> None:
        """Take the blocks of a session that waits, or else of one that stands still since then."""

    def turn_over(self, before_s: float) -> None:
        """Give up what is kept for the context that did not grow for longest."""

    def grant(self) -> None:
        """Give leave to whom it can be given."""


class Watchdog:
    """Looks every ``TICK_S`` while there is something to watch, and acts after ``bound_s``."""

    def __init__(self, watched: Watched, *, bound_s: float = WATCHDOG_S) -> None:
        self._watched = watched
        self._bound_s = bound_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch until there is nothing left to watch."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch())

    def check(self, now_s: float) -> None:
        """One look: a session makes room for what stands still, the context that is unchanged for
        longest makes room for those that grow."""
        before_s = now_s - self._bound_s
        if self._watched.stalled(before_s, self._bound_s):
            self._watched.unblock(before_s)
        elif self._watched.held_back(before_s):
            self._watched.turn_over(before_s)
        self._watched.grant()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._watched.has_claims():
            await asyncio.sleep(TICK_S)
            self.check(loop.time())
        self._task = None
