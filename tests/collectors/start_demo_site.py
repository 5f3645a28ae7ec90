"""Starts the demo site in a child, tells so, and stays."""

import asyncio

from s2l.collectors.demo_site.process import DemoSite


async def main() -> None:
    async with DemoSite(modules=["json"]) as site:
        print(site.url, flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
