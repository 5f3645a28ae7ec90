"""The demo site in a child process."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Final, Self

PORT_TAKEN: Final = 3
"""The child's exit status where it could not listen."""
_START_S: Final = 60.0
_STOP_S: Final = 5.0


class DemoSiteError(Exception):
    """The demo site did not start. Its text is one line for the person who wanted it."""


class PortTaken(DemoSiteError):
    """Another program listens on its port."""


class DemoSite:
    """Starts the demo site in a process of its own, and stops it: an async context manager.

    The child ends by itself when this process dies, however it dies. It is in a session of its
    own, so that Ctrl-C reaches this process alone, which then ends its work in order. With
    ``modules`` it serves only the pages of these modules of the catalogue.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        seed: int = 0,
        speed: float = 1.0,
        failure_rate: float = 0.0,
        modules: Sequence[str] = (),
    ) -> None:
        self._options = ["--port", str(port), "--seed", str(seed), "--speed", str(speed)]
        self._options += ["--failure-rate", str(failure_rate)]
        self._options += ["--modules", *modules] if modules else []
        self._child: asyncio.subprocess.Process | None = None
        self._errors: IO[bytes] | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The site's address, such as ``http://127.0.0.1:40123``."""
        if self._url is None:
            raise DemoSiteError("the demo site is not running; start it first")
        return self._url

    @property
    def search_url(self) -> str:
        """The template of its search endpoint."""
        return f"{self.url}/search?q={{query}}&n={{n}}"

    async def start(self) -> Self:
        """Start the child and wait until it listens.

        Raises:
            PortTaken: another program has its port.
            DemoSiteError: it ended, or took longer than a minute; with what it said.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        # -P: a file in the current folder must not stand in for a module of the library.
        self._child = await asyncio.create_subprocess_exec(
            *[sys.executable, "-P", "-m", "s2l.collectors.demo_site", "--with-parent"],
            *self._options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        try:
            self._url = await self._read_url()
        except BaseException:
            await self.stop()
            raise
        return self

    async def _read_url(self) -> str:
        assert self._child is not None
        assert self._child.stdout is not None
        try:
            line = await asyncio.wait_for(self._child.stdout.readline(), _START_S)
        except TimeoutError:
            raise DemoSiteError(f"the demo site did not start within {_START_S:.0f} s") from None
        if not line:
            code = await self._child.wait()
            error = PortTaken if code == PORT_TAKEN else DemoSiteError
            raise error(f"the demo site did not start: {self._last_words()}")
        return str(json.loads(line)["url"])

    def _last_words(self) -> str:
        assert self._child is not None
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._child.returncode}"

    async def wait(self) -> None:
        """Wait until the child ends by itself.

        Raises:
            DemoSiteError: it did, with what it said.
        """
        if self._child is not None:
            await self._child.wait()
            raise DemoSiteError(f"the demo site ended: {self._last_words()}")

    async def stop(self) -> None:
        """End the child; does nothing when it is not running."""
        child, self._child, self._url = self._child, None, None
        if child is not None and child.returncode is None:
            assert child.stdin is not None
            child.stdin.close()
            await _wait_or_kill(child)
        if self._errors is not None:
            self._errors.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


async def _wait_or_kill(child: asyncio.subprocess.Process) -> None:
    try:
        await asyncio.wait_for(child.wait(), _STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
