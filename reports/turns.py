"""What tells requests of one query apart, so that they can be paired: in runs and across them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Codes, codes
from s2l.reports.moments import AT_THE_END

TURN: Final = "turn"
"""0, 1, 2... among requests whose other keys are equal, in the order of their starts."""

_UNSTATED: Final = {"rate": -1.0, "repeat": 0, "answer_at": AT_THE_END}
"""A join never matches null with null, and a run that states no rate has one rate."""


def keyed(requests: pa.Table, keys: Sequence[str], numbers: pa.Array, name: str) -> pa.Table:
    """The keys of requests and their ``TURN``, nulls filled, beside ``numbers`` under ``name``.

    Args:
        requests: with the columns of ``REQUEST_SCHEMA`` that ``keys`` name.
        keys: the columns that are the same for requests that belong together.
        numbers: one for each request, as its row number.
        name: of their column.
    """
    columns = {
        key: pc.fill_null(requests[key], _UNSTATED[key]) if key in _UNSTATED else requests[key]
        for key in keys
    }
    starts = requests["start_intended_us"].to_numpy()
    rows = pa.table({**columns, name: numbers})
    return rows.append_column(TURN, pa.array(_turns([codes(rows, key) for key in keys], starts)))


def _turns(keys: Sequence[Codes], starts: Codes) -> Codes:
    """By the codes of each key; in the order of the rows where starts are the same."""
    order = np.lexsort((starts, *keys))
    position = np.arange(order.size, dtype=np.int64)
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    turns = np.empty(order.size, dtype=np.int64)
    turns[order] = position - np.maximum.accumulate(np.where(is_first, position, 0))
    return turns
