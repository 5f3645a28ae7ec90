"""Crawlee: its HTTP crawler held at ``concurrency``, queue in memory, extraction in workers."""

import asyncio
import logging
from importlib.metadata import version

from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient
from meter import Meter, Task, extract, warm_pool


async def main() -> None:
    task = Task.from_arguments()
    meter, pool = Meter(len(task.urls)), warm_pool(task.workers)
    at_once = task.concurrency
    crawler = HttpCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=at_once, max_concurrency=at_once, desired_concurrency=at_once
        ),
        storage_client=MemoryStorageClient(),
        max_request_retries=0,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handle(context: HttpCrawlingContext) -> None:
        body = await context.http_response.read()
        loop = asyncio.get_running_loop()
        _, text = await loop.run_in_executor(pool, extract, body)
        meter.page(text)

    requests = [Request.from_url(url, always_enqueue=True) for url in task.urls]
    meter.start()
    await crawler.run(requests)
    meter.say(version=version("crawlee"))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main())
