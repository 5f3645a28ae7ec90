"""How numbers are written for people: units, digits, shares."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

NOT_KNOWN = "n/a"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time for one row of figures, with the decimals that all of them share."""

    name: str
    per_s: float
    decimals: int

    @classmethod
    def fitting(cls, values_s: Iterable[float | None]) -> "Unit":
        """Seconds from 1 s on, else milliseconds; three digits of the typical smallest value."""
        known = [abs(value) for value in values_s if value is not None and value]
        if not known:
            return cls("s", 1.0, 2)
        name, per_s = ("s", 1.0) if max(known) >= 1 else ("ms", 1000.0)
        smallest = math.floor(math.log10(min(known) * per_s))
        return cls(name, per_s, min(max(2 - smallest, 0), 4 if name == "s" else 2))

    def text(self, value_s: float | None) -> str:
        """The figure without its unit."""
        if value_s is None:
            return NOT_KNOWN
        return f"{value_s * self.per_s:,.{self.decimals}f}"

    def exact(self, value_s: float | None) -> str:
        """Six digits of the figure without its unit, for sorting and for files."""
        return NOT_KNOWN if value_s is None else f"{value_s * self.per_s:.6g}"

    def with_name(self, value_s: float | None) -> str:
        """The figure with its unit."""
        return NOT_KNOWN if value_s is None else f"{self.text(value_s)} {self.name}"


def duration(value_s: float | None) -> str:
    """One time on its own: ``203 ms``, ``1.02 s``."""
    return Unit.fitting([value_s]).with_name(value_s)


def number(value: float | None) -> str:
    """A count in full, or a rate with three digits."""
    if value is None:
        return NOT_KNOWN
    if isinstance(value, int) or abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.{min(2 - math.floor(math.log10(abs(value))), 4)}f}"


def percent(share: float | None) -> str:
    """A share between 0 and 1, in per cent; what is not quite none or all is not called that."""
    if share is None:
        return NOT_KNOWN
    text = f"{share * 100:.1f}".removesuffix(".0")
    if text == "0" and share > 0:
        return "< 0.1 %"
    return "> 99.9 %" if text == "100" and share < 1 - 1e-9 else f"{text} %"


def times(ratio: float | None) -> str:
    """A ratio with two digits or more: ``0.97x``, ``5.1x``, ``38x``."""
    if ratio is None:
        return NOT_KNOWN
    return f"{ratio:.{2 if ratio < 2 else 1 if ratio < 10 else 0}f}x"


def factor(ratio: float) -> str:
    """A ratio as ``times`` writes it, without its x."""
    return times(ratio).removesuffix("x")
