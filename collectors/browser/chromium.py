"""The system's Chromium, by Playwright: the only module that imports it."""

import asyncio
import os
import shutil
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from s2l.collectors import failure
from s2l.collectors.browser.network import PageNetwork
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import USER_AGENT
from s2l.collectors.fetching.page import Fetched, NowUs, PageFetcher

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, WebSocketRoute

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What the routes do not see (prefetches, WebRTC, its own services) finds no name and no way out.
_ARGUMENTS: Final = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-pings",
)
_NOWHERE: Final = "http://127.0.0.1:9"


class BrowserUnavailable(Exception):
    """There is no browser to use; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """Pages open at once, seconds for each, the quiet after which it is taken as done, requests
    that it may make, and characters that it may become."""

    pages: int = 4
    total_s: float = 30.0
    quiet_s: float = 0.2
    most_requests: int = 100
    most_chars: int = 10_000_000


class Chromium:
    """A ``Renderer``: an async context manager. Each page gets a profile of its own.

    ``fetcher`` makes all requests; Chromium itself is left without a network. As root, Chromium
    has no sandbox and is refused, unless ``allow_no_sandbox``.

    Raises (on entering):
        BrowserUnavailable: no Playwright, no Chromium, or it does not start.
    """

    def __init__(
        self,
        fetcher: PageFetcher,
        limits: BrowserLimits | None = None,
        *,
        user_agent: str = USER_AGENT,
        allow_no_sandbox: bool = False,
    ) -> None:
        self._fetcher = fetcher
        self._limits = limits or BrowserLimits()
        self._user_agent = user_agent
        self._allow_no_sandbox = allow_no_sandbox
        self._turns = asyncio.Semaphore(self._limits.pages)
        self._stack = AsyncExitStack()
        self._browser: Browser | None = None

    async def __aenter__(self) -> Self:
        executable = find_chromium()
        sandbox = os.geteuid() != 0
        if not sandbox and not self._allow_no_sandbox:
            raise BrowserUnavailable(
                "Chromium has no sandbox as root: run as an ordinary user, or allow it without"
            )
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError:
            raise BrowserUnavailable(
                "a browser needs Playwright: pip install 's2l[browser]'"
            ) from None
        playwright = await self._stack.enter_async_context(async_playwright())
        try:
            self._browser = await playwright.chromium.launch(
                executable_path=executable,
                chromium_sandbox=sandbox,
                args=list(_ARGUMENTS),
                proxy={"server": _NOWHERE, "bypass": "<-loopback>"},
                handle_sigint=False,
            )
        except Error as error:
            await self._stack.aclose()
            words = str(error).partition("\n")[0]
            raise BrowserUnavailable(f"{executable} does not start: {words}") from error
        self._stack.push_async_callback(self._browser.close)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def render(self, page: Fetched, now_us: NowUs) -> Fetched:
        """Open ``page``, see ``Renderer``."""
        from playwright.async_api import Error

        limit_s = self._limits.total_s
        async with self._turns:
            try:
                async with asyncio.timeout(limit_s):
                    return await self._opened(page, now_us)
            except TimeoutError:
                raise Failure(failure.BROWSER_TIMEOUT, f"over {limit_s:g} s") from None
            except Error as error:
                words = str(error).partition("\n")[0]
                raise Failure(failure.BROWSER_FAILED, words) from error

    async def _opened(self, page: Fetched, now_us: NowUs) -> Fetched:
        limits = self._limits
        network = PageNetwork(page, self._fetcher, now_us, limits.most_requests)
        context = await self._new_context(network)
        try:
            tab = await context.new_page()
            await tab.goto(page.url, wait_until="load", timeout=limits.total_s * 1000)
            await network.quiet(limits.quiet_s)
            html = await self._html(tab)
            body_us = now_us()
            return replace(page, body=html, charset="utf-8", body_us=body_us, rendered=True)
        finally:
            await _close(context)

    async def _new_context(self, network: PageNetwork) -> "BrowserContext":
        assert self._browser is not None
        context = await self._browser.new_context(
            user_agent=self._user_agent, service_workers="block", accept_downloads=False
        )
        try:
            await context.route_web_socket("**/*", _refuse)
            await context.route("**/*", network.answer)
        except BaseException:
            await _close(context)
            raise
        return context

    async def _html(self, tab: "Page") -> bytes:
        """The page as HTML, without the programs that made it."""
        size = await tab.evaluate("document.documentElement.outerHTML.length")
        if size > self._limits.most_chars:
            raise Failure(failure.TOO_LARGE, f"more than {self._limits.most_chars} characters")
        return (await tab.content()).encode("utf-8", errors="replace")


def find_chromium() -> str:
    """The path of the system's Chromium.

    Raises:
        BrowserUnavailable: there is none on PATH.
    """
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    raise BrowserUnavailable("no Chromium on PATH: install it with your package manager")


async def _refuse(socket: "WebSocketRoute") -> None:
    """A page's own connection: none is made, and it hears so."""
    await socket.close()


async def _close(context: "BrowserContext") -> None:
    from playwright.async_api import Error

    # A browser that has died has closed it.
    with suppress(Error):
        await context.close()
