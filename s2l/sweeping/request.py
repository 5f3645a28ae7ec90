"""What a person asked ``s2l sweep`` for: checked, and made into a plan."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from s2l.replayer.delivery import deliveries_named
from s2l.replayer.options import ReplayOptions
from s2l.replaying.request import EMBEDDED_QPS, options_of
from s2l.replaying.target import Target
from s2l.reports.slo import Slo, parse_percentile_slos
from s2l.sweeping.plan import SweepPlan
from s2l.sweeping.rate_search import RateSearch
from s2l.workloads.arrival_process import arrival_form

FIRST_QPS: Final = 1.0


def sweep_plan_of(given: Mapping[str, Any], target: Target) -> SweepPlan:
    """The points of the sweep: those that were listed, or a search.

    Raises:
        click.UsageError: the options do not fit together.
    """
    rates, slo, first = given["qps"], given["slo"], given["first_qps"]
    if rates is None and slo is None:
        raise click.UsageError(
            "give --qps 1,2,4 or 1..32 or 1..20:1, or --slo ttft_s:p95<500ms to search by"
        )
    if rates is not None and first is not None:
        raise click.UsageError("--first-qps is where a search begins; leave it out with --qps")
    if arrival_form(given["arrivals"]).rate == "own":
        raise click.UsageError(f"--arrivals {given['arrivals']} has rates of its own; sweep others")
    search = None
    if rates is None:
        first = first or (FIRST_QPS if target.url is not None else EMBEDDED_QPS)
        search = RateSearch(first, given["resolution"])
    return SweepPlan(
        deliveries=deliveries_named(given["delivery"]),
        slos=parse_percentile_slos(slo) if slo is not None else (),
        rates=None if rates is None else tuple(rates),
        search=search,
        min_requests=given["min_requests"],
        min_seconds=given["min_seconds"],
    )


def point_options(given: Mapping[str, Any], target: Target, slos: Sequence[Slo]) -> ReplayOptions:
    """The options that all points share; their limits for goodput are those of the objectives.

    Raises:
        click.UsageError: the options do not fit together.
    """
    return options_of({**given, "rate_qps": None, "slo": request_limits(slos)}, target)


def request_limits(slos: Sequence[Slo]) -> str | None:
    """Objectives at percentiles as limits of a request: of each metric, that of its highest one."""
    highest: dict[str, Slo] = {}
    for slo in sorted(slos, key=lambda slo: slo.percentile or 0):
        highest[slo.metric] = Slo(slo.metric, None, slo.limit_s)
    return ",".join(map(str, highest.values())) or None
