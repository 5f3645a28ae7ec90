"""Kinds of option values, checked before anything starts."""

import math
from pathlib import Path
from typing import Any

import click


class _Positive(click.ParamType[float]):
    """A finite number above 0."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; give one above 0, such as 0.5 or 20", param, ctx)
        if not math.isfinite(number) or number <= 0:
            self.fail(f"{value} is out of range; give a number above 0", param, ctx)
        return number


class _ServerUrl(click.ParamType[str]):
    """The address of a server."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from s2l.serving_adapter.realtime.server_url import check_url

        try:
            return check_url(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


POSITIVE = _Positive()
TOKENIZER = click.Path(path_type=Path)
"""A ``tokenizer.json``, or the folder that it is in."""
SERVER_URL = _ServerUrl()
