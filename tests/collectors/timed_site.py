"""Serves the hostile site's timed pages; says its address, and its log once its input ends."""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import HostileSite


async def main() -> None:
    """Serve until standard input ends."""
    async with HostileSite() as site:
        print(site.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(json.dumps(site.last_byte_ns), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
