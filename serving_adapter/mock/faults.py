"""Faults by schedule: what goes wrong, and with which requests or when."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from s2l.serving_adapter.mock.draw import FAULT, uniform

BY_SHARE: Final = {
    "drop": "the connection is closed instead of an answer",
    "hang": "the request is never answered",
    "slow-headers": "half of the headers, the rest and the answer later (:2s; 1 s)",
    "cut": "the connection is closed after half of the answer",
    "garbage": "half way an event that is no JSON and no UTF-8",
    "error-in-stream": "an error event instead of the second half of the answer",
    "no-done": "the stream ends without its end marker",
}
"""Faults that hit a share of the requests, besides any status from 400 to 599."""

BY_TIME: Final = {
    "stall": "the whole server pauses (:2s; 1 s)",
    "die": "every connection is cut and the server ends",
}
"""Faults that come once, so many seconds after the start."""

_SPEC = re.compile(
    r"(?P<kind>[a-z0-9-]+)"
    r"@(?P<amount>\d+(?:\.\d+)?)(?P<unit>%|s)"
    r"(?::(?:(?P<duration>\d+(?:\.\d+)?)s|retry-after=(?P<retry>\d+)))?"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One of a plan. ``share`` in (0, 1] or ``at_s`` since the start says whom or when it hits."""

    kind: str
    share: float = 0.0
    at_s: float = 0.0
    duration_s: float = 1.0
    retry_after_s: int | None = None
    status: int | None = None

    @classmethod
    def parse(cls, spec: str) -> "Fault":
        """``KIND@SHARE%`` or ``KIND@SECONDSs``, with ``:SECONDSs`` or ``:retry-after=SECONDS``.

        Raises:
            ValueError: what is wrong, in one line.
        """
        match = _SPEC.fullmatch(spec)
        if match is None:
            raise ValueError(
                f"{spec!r} is not a fault; write it like 500@10%, 429@5%:retry-after=1, cut@2%, "
                "stall@12s:2s or die@20s"
            )
        kind, by_share = match["kind"], match["unit"] == "%"
        status = int(kind) if kind.isdigit() else None
        if status is not None and not 400 <= status < 600:
            raise ValueError(f"{spec!r}: a status is from 400 to 599")
        _check_kind(spec, kind if status is None else "", by_share)
        amount = float(match["amount"])
        if by_share and not 0 < amount <= 100:
            raise ValueError(f"{spec!r}: a share is above 0 % and at most 100 %")
        return cls(
            kind=kind if status is None else "status",
            share=amount / 100 if by_share else 0.0,
            at_s=0.0 if by_share else amount,
            duration_s=float(match["duration"] or 1.0),
            retry_after_s=int(match["retry"]) if match["retry"] else None,
            status=status,
        )


def _check_kind(spec: str, kind: str, by_share: bool) -> None:
    if kind and kind not in BY_SHARE and kind not in BY_TIME:
        known = ", ".join([*BY_SHARE, *BY_TIME])
        raise ValueError(f"{spec!r}: {kind!r} is not a fault; there are a status, {known}")
    if by_share and kind in BY_TIME:
        raise ValueError(f"{spec!r}: {kind} comes at a time, such as {kind}@12s")
    if not by_share and kind not in BY_TIME:
        raise ValueError(f"{spec!r}: {kind or 'a status'} hits a share, such as {kind or 500}@10%")


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All faults of one server. A request meets at most one; which one depends on the seed and its
    number alone."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    _by_share: tuple[Fault, ...] = field(init=False)

    def __post_init__(self) -> None:
        by_share = tuple(fault for fault in self.faults if fault.share)
        if sum(fault.share for fault in by_share) > 1 + 1e-9:
            raise ValueError("the shares of the faults are more than 100 % together")
        object.__setattr__(self, "_by_share", by_share)

    @classmethod
    def parse(cls, specs: Iterable[str], *, seed: int = 0) -> "FaultPlan":
        """Raises ValueError, see ``Fault.parse``."""
        return cls(tuple(map(Fault.parse, specs)), seed)

    def timed(self) -> list[Fault]:
        """Faults that come at a time, in order."""
        return sorted((f for f in self.faults if not f.share), key=lambda fault: fault.at_s)

    def of(self, number: int) -> Fault | None:
        """What goes wrong with the request of this number."""
        if not self._by_share:
            return None
        left = uniform(self.seed, FAULT, number)
        for fault in self._by_share:
            left -= fault.share
            if left < 0:
                return fault
        return None
