"""What a person asked ``s2l replay`` or ``s2l sweep`` for: checked, and made into options."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import click

from s2l.replayer.options import ReplayOptions
from s2l.replaying.target import Target
from s2l.workloads.arrival_process import arrival_form, arrival_process

EMBEDDED_QPS: Final = 0.2
EMBEDDED_CONTEXT_TOKENS: Final = 600
"""What the embedded model can do on two cores: some 700 tokens of prefill a second."""


def target_of(given: Mapping[str, Any]) -> Target:
    """The server that the options name.

    Raises:
        click.UsageError: they do not fit together.
    """
    names = [field.name for field in fields(Target) if field.name != "url"]
    target = Target(url=given["target"], **{name: given[name] for name in names})
    target.check()
    return target


def options_of(given: Mapping[str, Any], target: Target) -> ReplayOptions:
    """The options of a replay; on the embedded engine, contexts are cut to what it can do.

    Raises:
        click.UsageError: they do not fit together.
    """
    names = {field.name for field in fields(ReplayOptions)}
    chosen = {name: value for name, value in given.items() if name in names}
    if target.url is None and chosen.get("context_tokens") is None:
        chosen["context_tokens"] = EMBEDDED_CONTEXT_TOKENS
    options = ReplayOptions(**chosen)
    _check_arrivals(options)
    if options.concurrency is not None and options.max_concurrency is not None:
        raise click.UsageError(
            "--concurrency is a closed loop, and --max-concurrency caps an open one; give one"
        )
    return options


def rate_of(qps: float | None, arrivals: str, target: Target) -> float | None:
    """The rate; None where the arrivals state their own.

    Raises:
        click.UsageError: one is needed, or one too many.
    """
    form = arrival_form(arrivals)
    if form.rate == "own" and qps is not None:
        raise click.UsageError(f"--arrivals {arrivals} states its own rates; leave --qps out")
    if form.rate != "needed" or qps is not None:
        return qps
    if target.url is not None:
        raise click.UsageError("--target needs --qps, --concurrency or --arrivals recorded")
    return EMBEDDED_QPS


def check_closed_loop(qps: float | None, arrivals: str, burstiness: float) -> None:
    """A closed loop sends when an answer has come. Raises click.UsageError for what else says
    when."""
    if qps is not None:
        raise click.UsageError("--concurrency is a closed loop and has no rate; leave --qps out")
    if arrivals != "poisson" or burstiness != 1:
        raise click.UsageError("--concurrency is a closed loop; leave out --arrivals, --burstiness")


def _check_arrivals(options: ReplayOptions) -> None:
    try:
        arrival_process(options.arrivals, options.burstiness)
    except ValueError as error:
        raise click.UsageError(f"--arrivals {options.arrivals}: {error}") from None
