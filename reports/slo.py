"""Service level objectives: ``ttft_s:p95<500ms`` of a percentile, ``ttft_s<500ms`` of a request."""

import math
import re
from dataclasses import dataclass
from typing import Final

SLO_METRICS: Final = (
    "ttft_s",
    "ttft_service_s",
    "ttft_user_s",
    "ttft_answer_s",
    "tpot_s",
    "e2e_s",
    "e2e_user_s",
)
"""The latencies that every request has one of."""

_UNITS_S: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}

_ITEM: Final = re.compile(
    r"\s*(?P<metric>[a-z0-9_]+)\s*(?::\s*p(?P<level>[0-9.]+)\s*)?(?P<sign><|$|.)"
)
_LIMIT: Final = re.compile(r"\s*(?P<number>[0-9.]+(?:e-?[0-9]+)?)\s*(?P<unit>[a-zµ]*)\s*")
_EXAMPLE: Final = "ttft_s:p95<500ms or ttft_s<500ms"


class SloError(ValueError):
    """Objectives that cannot be read. Its text is one line that says where and what is right."""


@dataclass(frozen=True, slots=True)
class Slo:
    """``metric`` is below ``limit_s`` seconds: for every request that counts as good where
    ``percentile`` is None, else at that percentile (0-100) of a run's requests."""

    metric: str
    percentile: float | None
    limit_s: float

    def __str__(self) -> str:
        level = "" if self.percentile is None else f":p{self.percentile:g}"
        if self.limit_s >= 1:
            return f"{self.metric}{level}<{self.limit_s:g}s"
        return f"{self.metric}{level}<{round(self.limit_s * 1e3, 9):g}ms"


def parse_slos(text: str) -> tuple[Slo, ...]:
    """Read objectives separated by commas; limits are in ``s``, ``ms`` or ``us``.

    Raises:
        SloError: one cannot be read, or one metric has two limits at the same percentile.
    """
    found: list[Slo] = []
    start = 0
    for item in text.split(","):
        slo = _parse_item(item, start)
        if any((slo.metric, slo.percentile) == (one.metric, one.percentile) for one in found):
            raise _error(start, item, "this objective has a limit already")
        found.append(slo)
        start += len(item) + 1
    return tuple(found)


def parse_percentile_slos(text: str) -> tuple[Slo, ...]:
    """As ``parse_slos``, where each has to name a percentile: what a run as a whole has to meet."""
    slos = parse_slos(text)
    for slo in slos:
        if slo.percentile is None:
            raise SloError(f"SLO {str(slo)!r} names no percentile; write it as ttft_s:p95<500ms")
    return slos


def parse_request_slos(text: str) -> tuple[Slo, ...]:
    """As ``parse_slos``, where none may name a percentile: what each request has to meet."""
    slos = parse_slos(text)
    for slo in slos:
        if slo.percentile is not None:
            raise SloError(f"SLO {str(slo)!r} is of a percentile; write it as ttft_s<500ms")
    return slos


def _parse_item(item: str, start: int) -> Slo:
    """One objective; ``start`` is where it begins in the whole text."""
    match = _ITEM.match(item)
    if match is None:
        raise _error(start, item, f"expected an objective such as {_EXAMPLE}")
    if match["metric"] not in SLO_METRICS:
        choices = ", ".join(SLO_METRICS)
        raise _error(start + match.start("metric"), item, f"no such metric; choose of {choices}")
    if match["sign"] != "<":
        raise _error(start + match.start("sign"), item, f"expected '<', as in {_EXAMPLE}")
    level = None
    if match["level"] is not None:
        level = _level(match["level"], start + match.start("level"), item)
    return Slo(match["metric"], level, _limit_s(item, match.end(), start))


def _level(text: str, position: int, item: str) -> float:
    level = _number(text)
    if level is None or not 0 < level < 100:
        raise _error(position, item, "a percentile is above p0 and below p100, as p95 is")
    return level


def _limit_s(item: str, at: int, start: int) -> float:
    match = _LIMIT.fullmatch(item, at)
    number = None if match is None else _number(match["number"])
    if match is None or number is None or number <= 0:
        raise _error(start + at, item, "expected a limit above 0 with its unit, such as 500ms")
    if match["unit"] not in _UNITS_S:
        raise _error(start + match.start("unit"), item, "expected a unit: s, ms or us")
    return number * _UNITS_S[match["unit"]]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _error(position: int, item: str, what: str) -> SloError:
    return SloError(f"SLO {item.strip()!r}, character {position + 1}: {what}")
