"""The two deliveries of the same queries, side by side."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats, ttft_s

_KEYS = ["query_id", "rate", "repeat", "answer_at", "turn"]
_TURN_OF = _KEYS[:-1]


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
    rows = pa.table(
        {
            "query_id": mine["query_id"],
            # A join never matches null with null, and a run without a rate has one rate.
            "rate": pc.fill_null(mine["rate"], -1.0),
            "repeat": pc.fill_null(mine["repeat"], 0),
            "answer_at": pc.fill_null(mine["answer_at"], ""),
            "start": mine["start_intended_us"],
            delivery: chosen,
        }
    )
    turns = pa.array(_turns(rows))
    return rows.drop_columns("start").append_column("turn", turns)


def _turns(rows: pa.Table) -> npt.NDArray[np.int64]:
    """0, 1, 2... among the rows whose other keys are equal, in the order of their starts."""
    codes = [_codes(rows[name]) for name in _TURN_OF]
    order = np.lexsort((rows["start"].to_numpy(), *codes))
    position = np.arange(order.size, dtype=np.int64)
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = np.any([np.diff(code[order]) != 0 for code in codes], axis=0)
    turns = np.empty(order.size, dtype=np.int64)
    turns[order] = position - np.maximum.accumulate(np.where(is_first, position, 0))
    return turns


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """The same number for the same value."""
    codes = column.combine_chunks().dictionary_encode().indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int32)
