"""``s2l replay``"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from s2l.commands.report import report_on
from s2l.commands.serve import API_KEY_VARIABLE, embedded_server, model_to_serve
from s2l.exits import FAILED, INTERRUPTED, NOT_VALID
from s2l.folders import RUNS, new_folder
from s2l.named_trace import opened_trace
from s2l.parameters import POSITIVE, SERVER_URL
from s2l.progress import Bar, bar, console, say
from s2l.replayer.document_order import ORDERS
from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import RunInfo
from s2l.reports.summary import summary_json
from s2l.reports.terminal import print_summary
from s2l.serving_adapter.adapters import ADAPTERS
from s2l.serving_adapter.base import ServingAdapter
from s2l.workloads.arrival_process import ARRIVAL_PROCESSES
from s2l.workloads.trace import Trace

EMBEDDED_QPS = 0.2
EMBEDDED_CONTEXT_TOKENS = 600
"""What the embedded model can do on two cores: some 700 tokens of prefill a second."""


@click.command()
@click.argument("trace", required=False)
@click.option("--qps", type=POSITIVE, help="Queries per second.  [default: 0.2 when embedded]")
@click.option(
    "--arrivals",
    type=click.Choice(sorted(ARRIVAL_PROCESSES)),
    default="poisson",
    show_default=True,
    help="When queries start; recorded without --qps keeps the trace's own times.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--time-scale", type=POSITIVE, default=1.0, help="Multiplies retrieval times.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Only the first N queries.")
@click.option("--max-tokens", type=click.IntRange(1), default=32, show_default=True)
@click.option(
    "--context-tokens",
    type=click.IntRange(1),
    help="Cut each query's context to so many.  [default: 600 when embedded]",
)
@click.option(
    "--delivery", type=click.Choice(["stream", "wait", "both"]), default="both", show_default=True
)
@click.option(
    "--order",
    type=click.Choice(sorted(ORDERS)),
    default="score",
    show_default=True,
    help="Where documents stand in a context that is replaced: best first, kept in place, or last.",
)
@click.option("--target", type=SERVER_URL, help="A running server; default: the embedded engine.")
@click.option("--warmup", type=click.IntRange(0), default=2, show_default=True)
@click.option("--timeout", "timeout_s", type=POSITIVE, default=300.0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.")
@click.option("--strict", is_flag=True, help="Exit code 3 when the run is not valid.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
def replay(
    trace: str | None,
    qps: float | None,
    arrivals: str,
    target: str | None,
    context_tokens: int | None,
    out: Path | None,
    strict: bool,
    as_json: bool,
    **others: object,
) -> int:
    """Replay a trace and report.

    TRACE is a folder, an archive, or an address such as hf:USER/NAME@REVISION; without one, the
    newest trace is meant.

    The server's API key, where it needs one, is read from S2L_API_KEY.
    """
    if qps is None and arrivals != "recorded":
        if target is not None:
            raise click.UsageError("--target needs --qps, or --arrivals recorded")
        qps = EMBEDDED_QPS
    if target is None and context_tokens is None:
        context_tokens = EMBEDDED_CONTEXT_TOKENS
    options = ReplayOptions(
        rate_qps=qps,
        arrivals=arrivals,
        context_tokens=context_tokens,
        **others,  # type: ignore[arg-type]
    )
    opened = opened_trace(trace)
    path = out or new_folder(RUNS, "replay")
    info = asyncio.run(_replay(path, opened, options, target))
    return conclude(path, info, strict=strict, as_json=as_json)


async def _replay(path: Path, trace: Trace, options: ReplayOptions, target: str | None) -> RunInfo:
    async with server_at(target) as url:
        return await replay_into(path, trace, options, url, embedded=target is None)


@asynccontextmanager
async def server_at(target: str | None) -> AsyncIterator[str]:
    """The address of the target, or of an engine that is started for it."""
    if target is not None:
        yield target
        return
    model = await asyncio.to_thread(model_to_serve, None)
    async with embedded_server(model) as server:
        yield server.url


async def replay_into(
    path: Path, trace: Trace, options: ReplayOptions, url: str, *, embedded: bool
) -> RunInfo:
    """Replay against the server at ``url`` into a run folder, with progress."""
    async with adapter_for(url) as adapter:
        with _Display() as display:
            experiment = Experiment(
                trace,
                adapter,
                options,
                url=url,
                embedded=embedded,
                command=["s2l", *sys.argv[1:]],
                observer=display.observer,
            )
            say(f"replaying {trace.path} against {url}")
            return await experiment.run(path)


def adapter_for(url: str) -> ServingAdapter:
    """A client for the server at this address."""
    return ADAPTERS["realtime"](url, api_key=os.environ.get(API_KEY_VARIABLE))


def conclude(path: Path, info: RunInfo, *, strict: bool, as_json: bool) -> int:
    """Print what came out, write the report, and say how it ended by the exit code."""
    summary, report = report_on(path)
    print_summary(summary, console)
    if as_json:
        click.echo(summary_json(summary))
    say(f"run: {path}\nreport: {report}")
    if info.interrupted:
        say("interrupted: what was measured until then is kept")
        return INTERRUPTED
    if info.counts.succeeded == 0:
        return FAILED
    return NOT_VALID if strict and info.validity.verdict != "valid" else 0


@dataclass
class _Display:
    """A bar for each pass."""

    _stack: ExitStack = field(default_factory=ExitStack)
    _bar: Bar | None = None

    def __enter__(self) -> "_Display":
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def observer(self) -> Observer:
        return Observer(on_stage=lambda s: say(f"{s} ..."), on_pass=self._begin, on_end=self._end)

    def _begin(self, delivery: str, total: int) -> None:
        self._stack.close()
        self._bar = self._stack.enter_context(bar(f"{delivery:<6}", total))

    def _end(self, record: RequestRecord) -> None:
        if self._bar is None:
            return
        if record.succeeded and record.token_us:
            ttft_s = (record.token_us[0] - record.context_intended_us) / 1e6
            self._bar.advance(f"TTFT {ttft_s:.2f} s")
        else:
            self._bar.advance(record.error_type or "no text")
