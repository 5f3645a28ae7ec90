"""Scrapy: its downloader with ``concurrency`` requests, extraction in worker processes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import scrapy
from meter import Meter, Task, extract, warm_pool
from scrapy.crawler import CrawlerProcess


def main() -> None:
    task = Task.from_arguments()
    meter, pool = Meter(len(task.urls)), warm_pool(task.workers)

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            meter.start()
            for url in task.urls:
                yield scrapy.Request(url, dont_filter=True)

        async def parse(self, response: Any) -> None:
            loop = asyncio.get_running_loop()
            _, text = await loop.run_in_executor(pool, extract, response.body)
            meter.page(text)

    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": task.concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": task.concurrency,
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "RETRY_ENABLED": False,
            "COOKIES_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
            "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        }
    )
    process.crawl(Pages)
    process.start()
    meter.say(version=scrapy.__version__)


if __name__ == "__main__":
    main()
