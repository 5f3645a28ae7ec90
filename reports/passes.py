"""When each delivery's pass began: charts over time count from there.

Where questions were asked at several moments there is a pass for each; those of the final moment
(see ``moments``) are the final ones, of which the figures of a report are.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import PassWindow, RunInfo
from s2l.reports import metrics
from s2l.reports.metrics import Floats
from s2l.reports.moments import AT_THE_END


def final_passes(info: RunInfo, moment: str | None) -> list[PassWindow]:
    """The passes of the final moment (None: the retrieval's end); all where none names it."""
    named = [one for one in info.passes if (one.answer_at or AT_THE_END) == (moment or AT_THE_END)]
    return named or info.passes


def of_final_passes(info: RunInfo, samples: pa.Table, moment: str | None) -> pa.Table:
    """The samples (``delivery``, ``time_us``) from the end of the pass before to the start of the
    one after; ``moment`` is the final one."""
    final = final_passes(info, moment)
    if len(final) == len(info.passes):
        return samples
    times, kept = metrics.column(samples, "time_us"), np.zeros(samples.num_rows, dtype=np.bool_)
    for window in final:
        after = max((o.end_us for o in info.passes if o.end_us <= window.start_us), default=0)
        until = [o.start_us for o in info.passes if o.start_us >= window.end_us]
        mine = np.asarray(pc.equal(samples["delivery"], window.delivery).to_numpy())
        kept |= mine & (times >= after) & (times < min(until, default=np.inf))
    return samples.filter(pa.array(kept))


def pass_starts_us(info: RunInfo, requests: pa.Table, moment: str | None) -> dict[str, int]:
    """The start of each delivery's first final pass, by the run or else by its first request.

    Args:
        info: of the run.
        requests: the final ones.
        moment: when these were asked; None: at the retrieval's end.
    """
    found: dict[str, int] = {}
    grouped = requests.group_by("delivery").aggregate([("start_intended_us", "min")])
    for row in grouped.to_pylist():
        found[row["delivery"]] = row["start_intended_us_min"]
    for window in final_passes(info, moment):
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
