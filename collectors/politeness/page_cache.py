"""Pages kept on disk, given again as late as they came, instead of asking their site again."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import PAGE_MIMES, Fetched, NowUs, PageFetcher
from s2l.collectors.politeness.kept_page import KeptPage, read_kept, write_kept

_NOT_MODIFIED: Final = failure.http_status(304)


class PageCache:
    """A ``PageFetcher`` that keeps what another one fetches: an async context manager.

    Kept pages come again with the latency that they had then, without what was waited for
    manners, and with ``cached`` set. One older than ``fresh_s`` is asked for again, only if it
    has changed where the site can tell; None: never. Failures are not kept. A file is named by
    the hash of its address, so no page chooses where it goes.
    """

    def __init__(
        self,
        inner: PageFetcher,
        folder: Path,
        *,
        fresh_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inner = inner
        self._folder = folder
        self._fresh_s = fresh_s
        self._clock = clock
        self._writing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.gather(*self._writing)

    async def fetch(
        self,
        url: str,
        now_us: NowUs,
        mimes: Collection[str] | None = PAGE_MIMES,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch ``url``, see ``PageFetcher``; a request with ``headers`` of its own goes through.

        Raises:
            OSError: an earlier page could not be written.
        """
        if headers:
            return await self._inner.fetch(url, now_us, mimes, headers)
        start_us = now_us()
        path = self._path(url)
        kept = await asyncio.to_thread(read_kept, path, url)
        if kept is None or (mimes is not None and kept[0].mime not in mimes):
            return self._keep(url, start_us, await self._inner.fetch(url, now_us, mimes))
        if self._fresh_s is None or self._clock() - kept[0].saved_s < self._fresh_s:
            return await _replayed(*kept, start_us, now_us)
        try:
            page = await self._inner.fetch(url, now_us, mimes, kept[0].validators)
        except Failure as failed:
            if failed.status != _NOT_MODIFIED:
                raise
            head = replace(kept[0], saved_s=self._clock())
            self._write(path, head, kept[1])
            page = head.page(kept[1], now_us(), now_us())
            return replace(page, wait_us=failed.meta.get("wait_us", 0))
        return self._keep(url, start_us, page)

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode(errors='replace')).hexdigest()}.page"

    def _keep(self, url: str, start_us: int, page: Fetched) -> Fetched:
        head = KeptPage.of(page, url, start_us, self._clock())
        self._write(self._path(url), head, page.body)
        return page

    def _write(self, path: Path, head: KeptPage, body: bytes) -> None:
        """Write it meanwhile: the page is here now."""
        for task in [task for task in self._writing if task.done()]:
            self._writing.discard(task)
            task.result()
        self._writing.add(asyncio.create_task(asyncio.to_thread(write_kept, path, head, body)))


async def _replayed(kept: KeptPage, body: bytes, start_us: int, now_us: NowUs) -> Fetched:
    """The page, at the moment when it would be here had it been asked for at ``start_us``."""
    due_us = start_us + kept.body_us
    await asyncio.sleep(max(0, due_us - now_us()) / 1e6)
    page = kept.page(body, start_us + kept.first_byte_us, max(due_us, now_us()))
    return replace(page, dns_us=kept.dns_us, connect_us=kept.connect_us)
