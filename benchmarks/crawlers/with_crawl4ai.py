"""Crawl4AI's HTTP strategy, ``concurrency`` fetches at once, extraction in worker processes."""

import asyncio
from importlib.metadata import version

from crawl4ai import CrawlerRunConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from meter import Meter, Task, extract, warm_pool


async def main() -> None:
    task = Task.from_arguments()
    meter, pool = Meter(len(task.urls)), warm_pool(task.workers)
    urls, config = iter(task.urls), CrawlerRunConfig(verbose=False)
    loop = asyncio.get_running_loop()
    extracting: set[asyncio.Task[None]] = set()

    async def read(html: str) -> None:
        _, text = await loop.run_in_executor(pool, extract, html)
        meter.page(text)

    async def fetch_all(strategy: AsyncHTTPCrawlerStrategy) -> None:
        for url in urls:
            page = await strategy.crawl(url, config=config)
            extracting.add(asyncio.create_task(read(page.html)))

    async with AsyncHTTPCrawlerStrategy(max_connections=task.concurrency) as strategy:
        meter.start()
        await asyncio.gather(*(fetch_all(strategy) for _ in range(task.concurrency)))
        await asyncio.gather(*extracting)
    meter.say(version=version("crawl4ai"))


if __name__ == "__main__":
    asyncio.run(main())
