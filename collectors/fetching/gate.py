"""Where a fetch asks whether, and waits until, it may send a request."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from yarl import URL


class Gate(Protocol):
    """Passed once for every request, redirects too; inside it, the request is under way."""

    def turn(self, url: URL) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of a request to ``url``.

        Raises (on entering):
            Failure: it may not be sent.
        """
        ...


class OpenGate:
    """Lets everything through at once."""

    @asynccontextmanager
    async def turn(self, url: URL) -> AsyncIterator[None]:
        """No wait."""
        yield
