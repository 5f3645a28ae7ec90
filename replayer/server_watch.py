"""What is done about the server around each pass: its metrics sampled, its cache emptied."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass
from s2l.replayer.server_monitor import ServerMonitor


@dataclass(slots=True)
class ServerWatch:
    """``monitor`` samples the server's metrics while a pass is under way. ``reset_cache`` empties
    its prefix cache before a pass and says whether it could; both block, and run in threads."""

    monitor: ServerMonitor | None = None
    reset_cache: Callable[[], bool] | None = None
    resets: int = 0

    async def before_pass(self, pacer: Pacer, todo: Pass) -> None:
        """Raises ServingError where the server would not empty its cache."""
        if self.reset_cache is not None and await asyncio.to_thread(self.reset_cache):
            self.resets += 1
        if self.monitor is not None:
            self.monitor.start(pacer.now_us, todo.delivery, todo.answer_at)

    async def after_pass(self) -> None:
        """The last sample of a pass."""
        if self.monitor is not None:
            await asyncio.to_thread(self.monitor.stop)
