"""Reading values out of rows; each error says what is wrong and what would be right."""

import math
from collections.abc import Mapping
from typing import Any

_INT32_MAX = 2**31 - 1
_LAST_US = 2**61


def count_of(row: Mapping[str, Any], key: str) -> int:
    """A whole number of tokens, 0 or more, as a number or its text. Raises ValueError."""
    found = row.get(key)
    if isinstance(found, str) and found.strip().isdecimal():
        found = int(found)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _INT32_MAX:
        raise ValueError(f"{key} is {found!r}; it must be a whole number, 0 or more")
    return found


def microseconds(row: Mapping[str, Any], key: str, per_unit: float) -> int:
    """A time in µs from a number, or its text, of ``per_unit`` µs each. Raises ValueError."""
    found = row.get(key)
    try:
        value = math.nan if isinstance(found, bool) else float(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or abs(value * per_unit) > _LAST_US:
        raise ValueError(f"{key} is {found!r}; it must be a number")
    return round(value * per_unit)


def offset_us(row: Mapping[str, Any], key: str, per_unit: float) -> int:
    """A time in µs that is not below 0. Raises ValueError."""
    found = microseconds(row, key, per_unit)
    if found < 0:
        raise ValueError(f"{key} is {row[key]!r}; it must be 0 or more")
    return found


def text_of(row: Mapping[str, Any], key: str) -> str:
    """A text. Raises ValueError."""
    found = row.get(key)
    if not isinstance(found, str):
        raise ValueError(f"{key} is {found!r}; it must be text")
    return found


def units(time_us: int, per_unit: int) -> int | float:
    """µs in larger units, whole where they are: what ``microseconds`` reads back exactly."""
    return time_us // per_unit if time_us % per_unit == 0 else time_us / per_unit
