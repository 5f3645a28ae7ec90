"""``s2l mock``"""

import asyncio

import click

from s2l.foreground import run_until_interrupted
from s2l.parameters import POSITIVE
from s2l.progress import say
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True)
@click.option("--prefill-tokens-per-s", type=POSITIVE, default=10_000.0, show_default=True)
@click.option("--overhead-s", type=POSITIVE, default=0.01, show_default=True)
@click.option("--tpot-s", type=POSITIVE, default=0.01, show_default=True)
@click.option("--max-model-len", type=click.IntRange(1), default=131_072, show_default=True)
def mock(
    host: str,
    port: int,
    prefill_tokens_per_s: float,
    overhead_s: float,
    tpot_s: float,
    max_model_len: int,
) -> int:
    """Serve a model that computes nothing and takes exactly as long as told, until Ctrl-C."""
    latencies = Latencies(prefill_tokens_per_s, overhead_s, tpot_s)

    # Room for a thousand of the longest prompts: a mock measures clients, not its cache.
    engine = MockEngine(latencies, max_model_len=max_model_len, kv_capacity=1000 * max_model_len)

    async def serve() -> None:
        async with MockServer(engine, host=host, port=port) as server:
            say(f"mock server: {server.url}  (Ctrl-C stops it)")
            await asyncio.Event().wait()

    return run_until_interrupted(serve())
