"""``s2l dataset refetch``"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import monotonic_us
from s2l.collectors.page_fetching import PageFetching
from s2l.collectors.page_reader import PageReader
from s2l.exits import FAILED
from s2l.folders import TRACES, new_folder
from s2l.named_trace import opened_trace
from s2l.progress import bar, say
from s2l.workloads.scrubbing.refetching import FetchedText, NotFetched, Refetch, refill


@click.command(name="refetch")
@click.argument("trace", required=False)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the new trace.")
@click.option(
    "--keep-changed", is_flag=True, help="Keep texts that are others now, under their own hashes."
)
@click.option("--allow-private", is_flag=True, help="Fetch from this machine and network, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def refetch_texts(
    trace: str | None, out: Path | None, keep_changed: bool, allow_private: bool, as_json: bool
) -> int:
    """Fetch the texts that TRACE hides anew, and write a copy with those whose hashes agree.

    Sites are asked as a crawl asks them: what robots.txt allows, one request after the other.
    Exit code 1 when there is none.
    """
    source = opened_trace(trace)
    path = out or new_folder(TRACES, "refetched")
    settings = CrawlSettings(allow_private=allow_private)
    with asyncio.Runner() as runner, bar("documents", source.manifest.counts.documents) as shown:
        fetching = runner.run(_entered(settings))
        try:
            refetch = Refetch(_Fetch(runner, fetching.reader), keep_changed=keep_changed)
            refill(source, path, refetch, lambda done: shown.advance())
        finally:
            runner.run(fetching.__aexit__(None, None, None))
    counts = {name: refetch.counts[name] for name in ("same", "changed", "failed")}
    say(f"{path}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    for status, n in refetch.failures.most_common():
        say(f"failed: {n:,} {status}")
    if as_json:
        click.echo(msgspec.json.encode({"trace": str(path), **counts}))
    return 0 if counts["same"] or (keep_changed and counts["changed"]) else FAILED


async def _entered(settings: CrawlSettings) -> PageFetching:
    return await PageFetching(settings).__aenter__()


class _Fetch:
    """Fetches some addresses at once, each only once."""

    def __init__(self, runner: asyncio.Runner, reader: PageReader) -> None:
        self._runner = runner
        self._reader = reader

    def __call__(self, urls: Sequence[str]) -> list[FetchedText | NotFetched]:
        return self._runner.run(self._all(urls))

    async def _all(self, urls: Sequence[str]) -> list[FetchedText | NotFetched]:
        unique = list(dict.fromkeys(urls))
        found = await asyncio.gather(*map(self._one, unique))
        by_url = dict(zip(unique, found, strict=True))
        return [by_url[url] for url in urls]

    async def _one(self, url: str) -> FetchedText | NotFetched:
        try:
            read = await self._reader.read(url, monotonic_us(), monotonic_us)
        except Failure as failed:
            return NotFetched(failed.status)
        return FetchedText(read.found.text, read.found.title)
