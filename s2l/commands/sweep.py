"""``s2l sweep``"""

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from click.core import ParameterSource

from s2l.exits import FAILED, INTERRUPTED
from s2l.folders import RUNS, new_folder, unused
from s2l.named_trace import named_trace
from s2l.parameters import POSITIVE
from s2l.progress import console, say
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import RunInfo
from s2l.replayer.scale_out.crew import Crew
from s2l.replaying.calibrating import Calibration
from s2l.replaying.options import REQUESTS, TARGET, WORKLOAD, with_options
from s2l.replaying.parameters import DURATION, PERCENTILE_SLO, RATES
from s2l.replaying.request import target_of
from s2l.replaying.run import replay_into, run_interruptibly
from s2l.replaying.target import Target, server_at
from s2l.scale import crew_of, scale_options
from s2l.sweeping.plan import SweepPlan
from s2l.sweeping.record import SWEEP, SWEEP_FORMAT, Sweep, read_sweep
from s2l.sweeping.request import point_options, sweep_plan_of
from s2l.sweeping.run import sweep_on
from s2l.sweeping.table import sweep_table
from s2l.workloads.trace import Trace

_WITH_RESUME: Final = ("resume", "as_json")


@click.command()
@click.argument("trace", required=False)
@click.option("--qps", type=RATES, help="Rates: 1,2,4 or 1..32 (doubling) or 1..20:1 (steps).")
@click.option(
    "--slo",
    type=PERCENTILE_SLO,
    help="ttft_s:p95<500ms,tpot_s:p99<50ms: what a rate has to meet. Without --qps, the highest "
    "rate that does is searched for.",
)
@click.option("--first-qps", type=POSITIVE, help="Where a search begins.  [1; 0.2 when embedded]")
@click.option(
    "--resolution",
    type=click.FloatRange(0.001, 1),
    default=0.05,
    show_default=True,
    help="A search ends when the rate that fails is so much above the one that does not.",
)
@click.option(
    "--min-requests",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Of each pass; more where a percentile needs them.",
)
@click.option(
    "--min-time",
    "min_seconds",
    type=DURATION,
    default=30.0,
    show_default=True,
    help="Of starts in each pass, in seconds.",
)
@with_options(WORKLOAD, TARGET, REQUESTS)
@scale_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the sweep.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with an interrupted sweep.")
@click.option("--json", "as_json", is_flag=True, help="The points as JSON on standard output.")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    trace: str | None,
    out: Path | None,
    resume: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Replay a trace at several rates; find the highest that meets objectives.

    TRACE is as for replay. A list of rates ends early when every delivery is saturated. A request
    that fails counts as slower than any limit.
    """
    if resume is not None:
        _check_alone(context)
        found = read_sweep(resume)
        given = {**given, **_options_of(context, found)}
        trace, folder = found.trace, resume
    else:
        found = None
        if out is None:
            folder = new_folder(RUNS, "sweep")
        else:
            folder = unused(out, SWEEP, advice=f"go on with --resume {out}, or name another folder")
    target = target_of(given)
    plan = sweep_plan_of(given, target)
    options = point_options(given, target, plan.slos)
    path = named_trace(trace)
    opened = Trace.open(path)
    begun = found or _new_sweep(path, given)
    with crew_of(given) as crew:
        ended, cut = run_interruptibly(
            _sweep(folder, begun, plan, opened, options, target, crew, given["calibrate"])
        )
    return _conclude(folder, ended, cut, as_json=as_json)


def _check_alone(context: click.Context) -> None:
    """The options of a sweep that is resumed are its own."""
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
        if given and parameter.name not in _WITH_RESUME:
            name = max(parameter.opts, key=len)
            raise click.UsageError(f"leave out {name}: --resume takes the options of that sweep")


def _options_of(context: click.Context, found: Sweep) -> dict[str, Any]:
    """The options of a sweep, of the types that the command line gives them."""
    given = dict(found.options)
    for parameter in context.command.params:
        value = given.get(str(parameter.name))
        if isinstance(value, str):
            given[str(parameter.name)] = parameter.type.convert(value, parameter, context)
    return given


def _new_sweep(trace: Path, given: Mapping[str, Any]) -> Sweep:
    """What JSON has no form for is kept as it is written on a command line."""
    plain = {n: str(v) if isinstance(v, Path) or v == math.inf else v for n, v in given.items()}
    return Sweep(
        format=SWEEP_FORMAT,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        command=["s2l", *sys.argv[1:]],
        trace=str(trace),
        options=plain,
        slo=given["slo"],
    )


async def _sweep(
    folder: Path,
    begun: Sweep,
    plan: SweepPlan,
    trace: Trace,
    options: ReplayOptions,
    target: Target,
    crew: Crew | None,
    calibrate: bool | None,
) -> tuple[Sweep, str | None]:
    calibration = Calibration(calibrate)
    async with server_at(target.url) as url:

        async def replay(rate_qps: float, requests: int, path: Path) -> RunInfo:
            return await replay_into(
                path,
                trace,
                replace(options, rate_qps=rate_qps, n_queries=requests),
                url,
                embedded=target.url is None,
                target=target,
                calibration=calibration,
                crew=crew,
            )

        return await sweep_on(folder, begun, plan, replay)


def _conclude(folder: Path, ended: Sweep, cut: str | None, *, as_json: bool) -> int:
    """Print the points, write their report, and say how it ended by the exit code."""
    answered = _report(folder, ended)
    for delivery, rate in ended.highest_qps.items():
        found = "no rate" if rate is None else f"up to {rate:g} requests/s"
        say(f"{delivery}: {found} met {ended.slo}")
    if as_json:
        click.echo(msgspec.json.encode(ended))
    say(f"sweep: {folder}")
    if not ended.ended:
        say(f"{cut or 'interrupted'}; go on with: s2l sweep --resume {folder}")
        return FAILED if cut else INTERRUPTED
    say(ended.ended)
    return 0 if answered else FAILED


def _report(folder: Path, ended: Sweep) -> bool:
    """Print and write the figures of all points; whether any request was answered."""
    # Charts take a second to import, which is not to stand before the first request.
    from s2l.commands.report import report_on_sweep
    from s2l.reports.sweep import rate_series, sweep_runs

    if not ended.points:
        return False
    runs = sweep_runs(folder)
    summaries, page = report_on_sweep(folder)
    named = [(run.path.name, one) for run, one in zip(runs, summaries, strict=True)]
    console.print(sweep_table(rate_series(named).points, ended.points))
    say(f"report: {page}")
    return any(run.info.counts.succeeded for run in runs)
