"""``s2l mock``"""

import asyncio
import gc
import json
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from s2l.exits import FAILED
from s2l.parameters import POSITIVE
from s2l.progress import say
from s2l.serving_adapter.event_loop import run
from s2l.serving_adapter.mock.backend import HttpOptions
from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.mock.faults import FaultPlan
from s2l.serving_adapter.mock.latencies import Latencies
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES

NOT_NEGATIVE = click.FloatRange(0)
COUNT = click.IntRange(1)


class _FaultSpec(click.ParamType[str]):
    """A fault and its schedule."""

    name = "fault"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            FaultPlan.parse([str(value)])
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0: a free one."
)
@click.option("--ttft-ms", type=NOT_NEGATIVE, help="A constant time to first token.")
@click.option(
    "--prefill-tokens-per-s",
    type=POSITIVE,
    default=10_000.0,
    show_default=True,
    help="How fast tokens are prefilled that are not in the cache; not with --ttft-ms.",
)
@click.option(
    "--overhead-ms",
    type=NOT_NEGATIVE,
    default=10.0,
    show_default=True,
    help="Added to the time of a prefill; not with --ttft-ms.",
)
@click.option(
    "--ttft-jitter-ms",
    type=NOT_NEGATIVE,
    default=0.0,
    help="Adds up to so much to each time to first token.",
)
@click.option(
    "--tpot-ms",
    type=NOT_NEGATIVE,
    default=10.0,
    show_default=True,
    help="Time per output token after the first.",
)
@click.option(
    "--tokens-per-event",
    type=COUNT,
    default=1,
    show_default=True,
    help="Of the OpenAI HTTP API: tokens that come together.",
)
@click.option(
    "--output-tokens",
    type=COUNT,
    default=16,
    show_default=True,
    help="Of the OpenAI HTTP API: an answer's, where the request does not say.",
)
@click.option(
    "--max-model-len", type=COUNT, default=131_072, show_default=True, help="Longest prompt."
)
@click.option(
    "--max-concurrency",
    type=COUNT,
    default=100_000,
    show_default=True,
    help="Of the OpenAI HTTP API: requests served at once; others queue.",
)
@click.option("--kv-tokens", type=COUNT, help="Size of the KV cache.  [default: plenty]")
@click.option(
    "--prefix-cache/--no-prefix-cache",
    default=True,
    show_default=True,
    help="Whether what past requests prefilled is found again.",
)
@click.option(
    "--prefill",
    type=click.Choice(list(PREFILL_MODES)),
    default="auto",
    show_default=True,
    help="How Realtime sessions prefill early.",
)
@click.option(
    "--fault",
    "faults",
    type=_FaultSpec(),
    multiple=True,
    help="500@10%, 429@5%:retry-after=1, drop@…, hang@…, slow-headers@…, cut@…, garbage@…, "
    "error-in-stream@…, no-done@…, stall@12s:2s, die@20s; any number of times.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--log",
    "log_path",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write the server's own times of each request here, as JSON lines.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one line of JSON.")
@click.pass_context
def mock(
    context: click.Context,
    /,
    host: str,
    port: int,
    ttft_ms: float | None,
    prefill_tokens_per_s: float,
    overhead_ms: float,
    ttft_jitter_ms: float,
    tpot_ms: float,
    tokens_per_event: int,
    output_tokens: int,
    max_model_len: int,
    max_concurrency: int,
    kv_tokens: int | None,
    prefix_cache: bool,
    prefill: str,
    faults: tuple[str, ...],
    seed: int,
    log_path: Path | None,
    as_json: bool,
) -> int:
    """Serve a model that computes nothing and takes exactly as long as told, until Ctrl-C.

    It speaks the Realtime API and OpenAI's HTTP API, and tells its own times at /mock/log and
    /mock/timing.
    """
    _check_fit(context)
    latencies = Latencies(
        prefill_tokens_per_s=prefill_tokens_per_s,
        overhead_s=overhead_ms / 1000,
        tpot_s=tpot_ms / 1000,
        ttft_s=None if ttft_ms is None else ttft_ms / 1000,
        ttft_jitter_s=ttft_jitter_ms / 1000,
    )
    # Room for a thousand of the longest prompts: a mock measures clients, not its cache.
    kv_capacity = kv_tokens or 1000 * max_model_len
    engine = MockEngine(
        latencies,
        max_model_len=max_model_len,
        kv_capacity=kv_capacity,
        prefix_cache=prefix_cache,
    )
    try:
        plan = FaultPlan.parse(faults, seed=seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    options = HttpOptions(
        max_concurrency=max_concurrency,
        prefix_cache=prefix_cache,
        tokens_per_event=tokens_per_event,
        output_tokens=output_tokens,
        seed=seed,
        faults=plan,
        log_path=log_path,
    )
    server = MockServer(engine, host=host, port=port, http=options, prefill=prefill)
    try:
        return _run(_serve(server, as_json))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.filename is None:
            raise click.ClickException(
                f"{host}:{port}: {reason}; --port 0 takes a free one"
            ) from None
        raise click.ClickException(f"{error.filename}: {reason}") from None


def _check_fit(context: click.Context) -> None:
    """Refuse what a constant time to first token leaves without a meaning."""
    if context.params["ttft_ms"] is None:
        return
    for name in ("prefill_tokens_per_s", "overhead_ms"):
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--ttft-ms is constant; leave out --{name.replace('_', '-')}")


async def _serve(server: MockServer, as_json: bool) -> int:
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    async with server:
        say(f"mock server: {server.url}  (Ctrl-C stops it)")
        if as_json:
            click.echo(json.dumps({"url": server.url, "pid": os.getpid()}))
        gc.collect()
        gc.freeze()  # collections need not look again at what lives as long as the server,
        gc.set_threshold(5_000, 20, 100)  # and are made rarer, but not long
        ends = [asyncio.create_task(event.wait()) for event in (terminated, server.died)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
    if server.died.is_set():
        say("ended by the fault that was asked for")
        return FAILED
    return 0


def _run(server: Coroutine[Any, Any, int]) -> int:
    try:
        return run(server)
    except KeyboardInterrupt:
        say("stopped")
        return 0
