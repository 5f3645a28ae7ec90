"""Servers that run until Ctrl-C, which is how they end and no failure."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from s2l.progress import say


def run_until_interrupted(server: Coroutine[Any, Any, int | None]) -> int:
    """Run a server; 0 when it was stopped by Ctrl-C, else what it returns."""
    try:
        return asyncio.run(server) or 0
    except KeyboardInterrupt:
        say("stopped")
        return 0
