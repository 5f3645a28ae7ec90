"""``s2l replay``"""

from pathlib import Path
from typing import Any

import click
import msgspec

from s2l.exits import FAILED, INTERRUPTED, NOT_VALID
from s2l.folders import RUNS, new_folder, unused
from s2l.named_trace import opened_trace
from s2l.parameters import POSITIVE
from s2l.progress import console, say
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import RunInfo
from s2l.replayer.scale_out.crew import Crew
from s2l.replaying.calibrating import Calibration
from s2l.replaying.json_events import STDOUT, JsonEvents
from s2l.replaying.options import REQUESTS, TARGET, WORKLOAD, with_options
from s2l.replaying.parameters import DURATION, MOMENTS, REQUEST_SLO
from s2l.replaying.request import (
    check_closed_loop,
    options_of,
    rate_of,
    target_of,
)
from s2l.replaying.run import cut_short, plan_only, replay_into, run_interruptibly
from s2l.replaying.target import Target, server_at
from s2l.scale import crew_of, scale_options
from s2l.workloads.trace import Trace

_COUNT = click.IntRange(1)


@click.command()
@click.argument("trace", required=False)
@click.option("--qps", type=POSITIVE, help="Queries per second.  [default: 0.2 when embedded]")
@click.option("--concurrency", type=_COUNT, help="Instead of a rate: always so many under way.")
@click.option(
    "--queries",
    "n_queries",
    type=_COUNT,
    help="Requests; queries are used again where the trace has fewer.  [default: each once]",
)
@click.option("--duration", "duration_s", type=DURATION, help="No starts after so long.")
@click.option("--repeat", type=_COUNT, default=1, show_default=True, help="All of it so often.")
@click.option(
    "--answer-at",
    type=MOMENTS,
    default=(),
    help="When the question is asked, a pass for each: 25%,50%,100% of the retrieval, or 2s.",
)
@click.option("--deadline", type=MOMENTS, help="As --answer-at, one moment: 2s.")
@with_options(WORKLOAD, TARGET, REQUESTS)
@scale_options
@click.option("--slo", type=REQUEST_SLO, help="Limits for goodput: ttft_s<500ms,tpot_s<50ms.")
@click.option("--dry-run", is_flag=True, help="Print the plan and send nothing of it.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.")
@click.option("--strict", is_flag=True, help="Exit code 3 when the run is not valid.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
@click.option("--json-events", help="A file (- is standard output) for progress, one JSON a line.")
def replay(
    trace: str | None,
    dry_run: bool,
    out: Path | None,
    strict: bool,
    as_json: bool,
    json_events: str | None,
    **given: Any,
) -> int:
    """Replay a trace and report.

    TRACE is a folder, an archive, or an address such as hf:USER/NAME@REVISION; without one, the
    newest trace is meant.

    The server's API key, where it needs one, is read from S2L_API_KEY.
    """
    if as_json and json_events == STDOUT:
        raise click.UsageError("--json and --json-events - both want standard output; choose one")
    target = target_of(given)
    options = _options(given, target)
    opened = opened_trace(trace)
    if dry_run:
        return _dry_run(opened, options, target, as_json=as_json)
    if out is None:
        path = new_folder(RUNS, "replay")
    else:
        path = unused(out, "run.json", advice="name another folder")
        advice = f"recover that run with: s2l report {out}; or name another folder"
        path = unused(out, "journal/begun.json", advice=advice)
    events = None if json_events is None else _opened(json_events)
    try:
        with crew_of(given) as crew:
            info = run_interruptibly(
                _replay(path, opened, options, target, events, crew, given["calibrate"])
            )
        return conclude(path, info, strict=strict, as_json=as_json, events=events)
    finally:
        if events is not None:
            events.close()


def _opened(json_events: str) -> JsonEvents:
    try:
        return JsonEvents(json_events)
    except OSError as error:
        raise click.UsageError(f"--json-events {json_events}: {error.strerror}") from None


def _options(given: dict[str, Any], target: Target) -> ReplayOptions:
    if given["deadline"] is not None:
        if given["answer_at"]:
            raise click.UsageError("--deadline is one moment of --answer-at; give one of them")
        given["answer_at"] = given["deadline"]
    qps, arrivals = given["qps"], given["arrivals"]
    if given["concurrency"] is not None:
        check_closed_loop(qps, arrivals, given["burstiness"])
        return options_of({**given, "rate_qps": None}, target)
    return options_of({**given, "rate_qps": rate_of(qps, arrivals, target)}, target)


async def _replay(
    path: Path,
    trace: Trace,
    options: ReplayOptions,
    target: Target,
    events: JsonEvents | None,
    crew: Crew | None,
    calibrate: bool | None,
) -> RunInfo:
    async with server_at(target.url) as url:
        return await replay_into(
            path,
            trace,
            options,
            url,
            embedded=target.url is None,
            target=target,
            calibration=Calibration(calibrate),
            events=events,
            crew=crew,
        )


def _dry_run(trace: Trace, options: ReplayOptions, target: Target, *, as_json: bool) -> int:
    async def planned() -> Any:
        async with server_at(target.url) as url:
            return await plan_only(trace, options, url, embedded=target.url is None, target=target)

    plan = run_interruptibly(planned())
    if as_json:
        click.echo(msgspec.json.encode(plan))
    else:
        for line in plan.lines():
            click.echo(line)
    return 0


def conclude(
    path: Path,
    info: RunInfo,
    *,
    strict: bool,
    as_json: bool,
    events: JsonEvents | None = None,
) -> int:
    """Print what came out, write the report, and say how it ended by the exit code."""
    # Charts take a second to import, which is not to stand before the first request.
    from s2l.commands.report import report_on
    from s2l.reports.summary import summary_json
    from s2l.reports.terminal import print_summary

    summary, report = report_on(path)
    print_summary(summary, console)
    if as_json:
        click.echo(summary_json(summary))
    say(f"run: {path}\nreport: {report}")
    code = _exit_code(info, strict=strict)
    if events is not None:
        for finding in info.validity.findings:
            events.finding(finding.check, finding.severity, finding.text)
        events.finished(
            run=str(path),
            report=str(report),
            verdict=info.validity.verdict,
            counts=msgspec.to_builtins(info.counts),
            interrupted=info.interrupted,
            exit_code=code,
        )
    if info.interrupted:
        say(f"{cut_short(info) or 'interrupted'}: what was measured until then is kept")
    return code


def _exit_code(info: RunInfo, *, strict: bool) -> int:
    if cut_short(info) is not None:
        return FAILED
    if info.interrupted:
        return INTERRUPTED
    if info.counts.succeeded == 0:
        return FAILED
    return NOT_VALID if strict and info.validity.verdict != "valid" else 0
