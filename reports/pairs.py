"""The two deliveries of the same queries, side by side."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats, ttft_s
from s2l.reports.turns import TURN, keyed

_TURN_OF: Final = ("query_id", "rate", "repeat", "answer_at")
_KEYS: Final = [*_TURN_OF, TURN]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Requests of the same query, rate, repeat and ``answer_at`` that succeeded in both deliveries.

    Row i of ``wait`` (columns of the requests) belongs to row i of ``stream``; ``wait_rows`` and
    ``stream_rows`` are where they stand in the requests. ``unpaired`` counts the queries that did
    not succeed in both.
    """

    wait: pa.Table
    stream: pa.Table
    wait_rows: pa.Array
    stream_rows: pa.Array
    unpaired: int

    @classmethod
    def of(cls, requests: pa.Table) -> "Pairs":
        """Pair a run's requests; a query asked n times is paired turn by turn."""
        aligned = align(requests)
        both = aligned.drop_null().combine_chunks()
        failed = pc.is_valid(requests["error_type"]).combine_chunks()
        rows = (both["wait"].combine_chunks(), both["stream"].combine_chunks())
        fine = pc.invert(pc.or_(*(failed.take(side) for side in rows)))
        wait, stream = (side.filter(fine) for side in rows)
        unpaired = aligned.num_rows - len(wait)
        return cls(requests.take(wait), requests.take(stream), wait, stream, unpaired)

    def __len__(self) -> int:
        """The number of pairs."""
        return int(self.wait.num_rows)

    def gains(self) -> Floats:
        """``ttft_s`` wait / stream for each pair; NaN unless both are known and positive."""
        wait, stream = ttft_s(self.wait), ttft_s(self.stream)
        found = np.full(wait.size, np.nan)
        np.divide(wait, stream, out=found, where=(wait > 0) & (stream > 0))
        return found


def align(requests: pa.Table) -> pa.Table:
    """Row numbers ``wait`` and ``stream`` of each query, in the order of the requests.

    Null where the query is not in that delivery; failed requests are there too.
    """
    joined = _side(requests, "wait").join(_side(requests, "stream"), _KEYS, join_type="full outer")
    first = pc.min_element_wise(joined["wait"], joined["stream"])
    return joined.append_column("first", first).sort_by("first").select(["wait", "stream"])


def _side(requests: pa.Table, delivery: str) -> pa.Table:
    """Pairing keys of one delivery with the row numbers in ``requests``."""
    chosen = pa.array(np.flatnonzero(pc.equal(requests["delivery"], delivery).to_numpy()))
    mine = requests.select([*_TURN_OF, "start_intended_us"]).take(chosen)
    return keyed(mine, _TURN_OF, chosen, delivery)
