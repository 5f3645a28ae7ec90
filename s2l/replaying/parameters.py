"""Kinds of option values of a replay, checked before anything starts."""

import re
from typing import Any, Final

import click

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Duration(click.ParamType[float]):
    """Seconds, or a number with its unit."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = _DURATION.fullmatch(str(value).strip())
        seconds = float(found[1]) * _SECONDS[found[2] or "s"] if found else 0.0
        if seconds <= 0:
            self.fail(
                f"{value!r} is not a duration above 0, such as 90, 90s, 1.5m or 2h", param, ctx
            )
        return seconds


class _Burstiness(click.ParamType[float]):
    """A number above 0; ``inf`` is one of them."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not number > 0:
            self.fail(f"{value!r} is not a number above 0, such as 0.5, 1 or inf", param, ctx)
        return number


class _Arrivals(click.ParamType[str]):
    """The text of an arrival process."""

    name = "arrivals"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from s2l.workloads.arrival_process import arrival_process
        from s2l.workloads.errors import TraceError

        try:
            arrival_process(str(value))
        except (ValueError, TraceError) as error:
            self.fail(str(error), param, ctx)
        return str(value)


class _Moments(click.ParamType[tuple[str, ...]]):
    """Moments at which the question is asked, separated by commas."""

    name = "moments"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        from s2l.replayer.answer_at import points

        if isinstance(value, tuple):
            return value
        moments = tuple(part.strip() for part in str(value).split(","))
        try:
            points(moments)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return moments


class _Slo(click.ParamType[str]):
    """Service level objectives, kept as text. ``percentiles``: each names one."""

    name = "slo"

    def __init__(self, *, percentiles: bool) -> None:
        self._percentiles = percentiles

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from s2l.reports.slo import SloError, parse_percentile_slos, parse_request_slos

        parse = parse_percentile_slos if self._percentiles else parse_request_slos
        try:
            parse(str(value))
        except SloError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class _Rates(click.ParamType[tuple[float, ...]]):
    """The rates of a sweep."""

    name = "rates"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        from s2l.sweeping.rates import parse_rates

        if isinstance(value, tuple):
            return value
        try:
            return parse_rates(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION: Final = _Duration()
BURSTINESS: Final = _Burstiness()
ARRIVALS: Final = _Arrivals()
MOMENTS: Final = _Moments()
REQUEST_SLO: Final = _Slo(percentiles=False)
PERCENTILE_SLO: Final = _Slo(percentiles=True)
RATES: Final = _Rates()
