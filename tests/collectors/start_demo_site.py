"""Starts the demo site in a child, tells its process id, and stays."""

import asyncio
import json

from s2l.collectors.demo_site.process import DemoSite


async def main() -> None:
    async with DemoSite(modules=["json"]) as site:
        print(json.dumps({"pid": site.pid}), flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
