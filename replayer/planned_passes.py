"""The passes of a run as its journal keeps them: enough to say what was never sent."""

from collections.abc import Sequence

import msgspec
import numpy as np

from s2l.replayer.passes import Pass
from s2l.replayer.record import QuerySend


class _PlannedPass(msgspec.Struct, frozen=True, array_like=True):
    delivery: str
    answer_at: str | None
    rate: float | None
    queries: tuple[QuerySend, ...]


class PlannedPasses(msgspec.Struct, frozen=True):
    """``starts_us`` are 64-bit integers, the same for all passes; none where no number of requests
    was planned."""

    starts_us: bytes
    passes: tuple[_PlannedPass, ...]

    @classmethod
    def of(cls, passes: Sequence[Pass], *, open_ended: bool) -> "PlannedPasses":
        """What is to be kept of passes that share one schedule."""
        starts_us = b"" if open_ended or not passes else passes[0].starts_us.tobytes()
        kept = (_PlannedPass(p.delivery, p.answer_at, p.rate, p.queries) for p in passes)
        return cls(starts_us, tuple(kept))

    def restored(self) -> list[Pass]:
        """The passes again; they know no run, as nothing of theirs is to be sent."""
        starts_us = np.frombuffer(self.starts_us, dtype=np.int64)
        numbers = np.arange(len(starts_us))
        return [
            Pass("", p.delivery, p.answer_at, p.rate, p.queries, numbers, starts_us)
            for p in self.passes
        ]
