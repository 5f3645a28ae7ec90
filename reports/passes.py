"""When each delivery's pass began: charts over time count from there."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import RunInfo
from s2l.reports import metrics
from s2l.reports.metrics import Floats


def pass_starts_us(info: RunInfo, requests: pa.Table) -> dict[str, int]:
    """The start of each delivery's first pass, by the run or else by its first request."""
    found: dict[str, int] = {}
    grouped = requests.group_by("delivery").aggregate([("start_intended_us", "min")])
    for row in grouped.to_pylist():
        found[row["delivery"]] = row["start_intended_us_min"]
    for window in info.passes:
        if window.delivery in found:
            found[window.delivery] = min(found[window.delivery], window.start_us)
    return found


def of_delivery(table: pa.Table, delivery: str) -> pa.Table:
    """The rows of one delivery."""
    return table.filter(pc.equal(table["delivery"], delivery))


def since_s(table: pa.Table, name: str, start_us: int) -> Floats:
    """A time column as seconds since ``start_us``; NaN where it never happened."""
    found: Floats = np.asarray((metrics.column(table, name) - start_us) / metrics.US_PER_S)
    return found
