"""The mock in a process of its own, for calibrating the client: ``python -m`` this module.

It prints its address as one line and serves until its standard input ends.
"""

import asyncio
import gc
import os
import sys

from s2l.serving_adapter.event_loop import run
from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.mock.latencies import Latencies
from s2l.serving_adapter.mock.server import MockServer


async def serve(ttft_s: float, tpot_s: float) -> None:
    """Serve until whoever started this is gone."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: over.set() if not os.read(0, 1) else None)
    async with MockServer(MockEngine(Latencies(ttft_s=ttft_s, tpot_s=tpot_s))) as server:
        gc.freeze()
        print(server.url, flush=True)
        await over.wait()


if __name__ == "__main__":
    run(serve(float(sys.argv[1]), float(sys.argv[2])))
