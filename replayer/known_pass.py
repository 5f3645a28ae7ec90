"""What a journal tells of one pass: which requests ended, how, and when it went on."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.passes import Pass
from s2l.replayer.run import PassWindow


class KnownPass:
    """Filled row by row; per planned request it keeps a byte. Times in µs since the run's start."""

    def __init__(self, todo: Pass) -> None:
        self.todo = todo
        self.ended: Counter[str | None] = Counter()
        """Requests by ``error_type``; None: succeeded."""
        self._known = np.zeros(len(todo), dtype=np.bool_)
        self._start_us: int | None = None
        self._first_sample_us: int | None = None
        self._last_us: int | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Note requests of this pass, with the columns of ``REQUEST_SCHEMA``."""
        self.ended.update(rows["error_type"].to_pylist())
        starts_us = rows["start_intended_us"].to_numpy()
        if len(self.todo):
            names = rows["request_id"].to_pylist()
            numbers = [int(name.rpartition("-")[2]) for name in names]
            self._known[numbers] = True
            starts_us = starts_us - self.todo.starts_us[numbers]
        self._start_us = _least(self._start_us, int(starts_us.min()))
        self._see_until(pc.max(rows["end_us"]).as_py())

    def add_sample(self, time_us: int) -> None:
        """Note that the client was sampled in this pass."""
        self._first_sample_us = _least(self._first_sample_us, time_us)
        self._see_until(time_us)

    @property
    def unsent(self) -> int:
        """Requests that were not sent as far as anybody knows."""
        return int((~self._known).sum())

    def left(self) -> list[int]:
        """The places of the requests that have no row."""
        found: list[int] = np.flatnonzero(~self._known).tolist()
        return found

    @property
    def window(self) -> PassWindow | None:
        """When it went on, up to the last that is known; None where it never began."""
        start_us = self._first_sample_us if self._start_us is None else self._start_us
        if start_us is None:
            return None
        end_us = max(start_us, self._last_us or start_us)
        return PassWindow(
            delivery=self.todo.delivery,
            start_us=start_us,
            end_us=end_us,
            answer_at=self.todo.answer_at,
        )

    def _see_until(self, time_us: int | None) -> None:
        if time_us is not None:
            self._last_us = max(time_us, time_us if self._last_us is None else self._last_us)


def _least(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
