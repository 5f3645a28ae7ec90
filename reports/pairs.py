"""The two deliveries of the same queries, side by side."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats, ttft_s

_KEYS = ["query_id", "rate", "turn"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Requests of the same query and rate that succeeded in both deliveries.

    Row i of ``wait`` (columns of ``REQUEST_SCHEMA``) belongs to row i of ``stream``. ``unpaired``
    counts the queries that did not succeed in both.
    """

    wait: pa.Table
    stream: pa.Table
    unpaired: int

    @classmethod
    def of(cls, requests: pa.Table) -> "Pairs":
        """Pair a run's requests; a query asked n times is paired turn by turn."""
        aligned = align(requests)
        both = aligned.drop_null()
        wait, stream = requests.take(both["wait"]), requests.take(both["stream"])
        fine = pc.and_(pc.is_null(wait["error_type"]), pc.is_null(stream["error_type"]))
        wait, stream = wait.filter(fine), stream.filter(fine)
        return cls(wait, stream, aligned.num_rows - wait.num_rows)

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
    rows = pa.table(
        {
            "query_id": requests["query_id"],
            # A join never matches null with null, and a run without a rate has one rate.
            "rate": pc.fill_null(requests["rate"], -1.0),
            "start": requests["start_intended_us"],
            delivery: pa.array(np.arange(requests.num_rows)),
        }
    ).filter(pc.equal(requests["delivery"], delivery))
    rows = rows.sort_by([(name, "ascending") for name in ("query_id", "rate", "start", delivery)])
    return rows.drop_columns("start").append_column("turn", pa.array(_turns(rows)))


def _turns(rows: pa.Table) -> npt.NDArray[np.int64]:
    """0, 1, 2... within each run of equal query and rate."""
    position = np.arange(rows.num_rows, dtype=np.int64)
    if not position.size:
        return position
    codes = rows["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    rate = rows["rate"].to_numpy()
    is_first = np.r_[True, (codes[1:] != codes[:-1]) | (rate[1:] != rate[:-1])]
    started: npt.NDArray[np.int64] = np.maximum.accumulate(np.where(is_first, position, 0))
    return position - started
