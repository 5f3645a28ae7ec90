"""The rates of a sweep as they are written: a list, a range by doubling, a range by steps."""

import math
import re
from typing import Final

MOST_RATES: Final = 1000

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)"
_RANGE: Final = re.compile(rf"{_NUMBER}\.\.{_NUMBER}(?::{_NUMBER})?")
_EXAMPLE: Final = "1,2,4 or 1..32 (doubling) or 1..20:1 (in steps of 1)"


def parse_rates(text: str) -> tuple[float, ...]:
    """The rates in requests a second, ascending, each once.

    ``1,2,4`` are these; ``1..20`` doubles from 1 on and ends with 20; ``1..20:1`` goes in steps.
    Parts separated by commas may be either.

    Raises:
        ValueError: it is not written like that, or it means more rates than a sweep can have.
    """
    rates: set[float] = set()
    for part in text.split(","):
        rates.update(_part(part.strip(), text))
        if len(rates) > MOST_RATES:
            raise ValueError(f"{text!r} is more than {MOST_RATES} rates; use larger steps")
    return tuple(sorted(rates))


def _part(part: str, text: str) -> list[float]:
    if (found := _RANGE.fullmatch(part)) is None:
        return [_rate(part, text)]
    low, high = _rate(found[1], text), _rate(found[2], text)
    if low > high:
        raise ValueError(f"{part!r} goes down; write the lower rate first")
    if found[3] is not None:
        return _stepped(low, high, _rate(found[3], text))
    doublings = math.ceil(math.log2(high / low) - 1e-9)
    return [low * 2.0**k for k in range(doublings)] + [high]


def _stepped(low: float, high: float, step: float) -> list[float]:
    steps = math.floor((high - low) / step + 1e-9)
    # Twelve digits: 0.1 + 2 * 0.1 is to be 0.3.
    return [float(f"{low + k * step:.12g}") for k in range(min(steps, MOST_RATES) + 1)]


def _rate(part: str, text: str) -> float:
    try:
        rate = float(part)
    except ValueError:
        raise ValueError(f"{text!r} is not a list of rates; write {_EXAMPLE}") from None
    if not math.isfinite(rate) or rate <= 0:
        raise ValueError(f"{part} is out of range; a rate is above 0")
    return rate
