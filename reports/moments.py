"""The moments of its retrieval at which a query was asked, and which of them figures are of.

Where a run asked at several moments there is a pass for each. The final one is the retrieval's end
or, in a run that never waited for that, its latest moment: requests of several moments lie in
passes of their own, and pooled they would have neither one window nor one latency.
"""

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Booleans, Floats, retrieval_s

AT_THE_END: Final = "100%"
"""The moment of those that waited for the whole retrieval, which say it or no moment at all."""

_MOMENT: Final = re.compile(r"(\d+(?:\.\d+)?)(%|ms|s)")
_UNITS_S: Final = {"s": 1.0, "ms": 1e-3}


def asked_at(requests: pa.Table) -> pa.ChunkedArray:
    """The moment of each request: ``25%`` of its retrieval, ``2s`` from its start."""
    return pc.fill_null(requests["answer_at"], AT_THE_END)


def moments(requests: pa.Table) -> tuple[str, ...]:
    """Those of the requests, earliest first; shares and times as they lie for most of them."""
    asked = asked_at(requests)
    names = asked.unique().to_pylist()
    if len(names) < 2:
        return tuple(names)
    waited_s = {name: _waited_s(requests, asked, name) for name in names}
    wholes = [
        waited_s[name] / share for name in names if (share := _share(name)) and waited_s[name]
    ]
    whole_s = float(np.median(wholes)) if wholes else 0.0
    places_s = {name: _place_s(name, whole_s, waited_s[name]) for name in names}
    return tuple(sorted(names, key=lambda name: (name == AT_THE_END, places_s[name], name)))


def final_moment(requests: pa.Table) -> str:
    """The retrieval's end, or the latest moment of requests that never waited for it."""
    return moments(requests)[-1] if requests.num_rows else AT_THE_END


def early_moment(requests: pa.Table) -> str | None:
    """The final moment where it lies before the retrieval's end; None where it is that end."""
    found = final_moment(requests)
    return None if found == AT_THE_END else found


def final_mask(requests: pa.Table) -> Booleans:
    """Which requests were asked at the final moment."""
    chosen = pc.equal(asked_at(requests), final_moment(requests))
    return np.asarray(chosen.to_numpy(), dtype=np.bool_)


def final_rows(requests: pa.Table) -> pa.Table:
    """The requests that were asked at the final moment, of which all figures of a run are.

    Give it all requests of a run, failed ones too: the moment is the run's.
    """
    mask = final_mask(requests)
    return requests if mask.all() else requests.filter(pa.array(mask))


def moment_text(moment: str) -> str:
    """``at 50% of the retrieval``, ``2s after the start``."""
    return f"at {moment} of the retrieval" if moment.endswith("%") else f"{moment} after the start"


def _waited_s(requests: pa.Table, asked: pa.ChunkedArray, name: str) -> float:
    """How long requests of one moment waited for it: the median."""
    mine: Floats = retrieval_s(requests.filter(pc.equal(asked, name)))
    return float(np.median(mine))


def _share(name: str) -> float | None:
    found = _MOMENT.fullmatch(name)
    return float(found[1]) / 100 if found and found[2] == "%" else None


def _place_s(name: str, whole_s: float, waited_s: float) -> float:
    """Seconds from a query's start, of which a share is of a typical retrieval; by the name, as in
    a run that was interrupted each moment may have other queries."""
    found = _MOMENT.fullmatch(name)
    if found is None:
        return waited_s
    number, unit = float(found[1]), found[2]
    return number / 100 * whole_s if unit == "%" else number * _UNITS_S[unit]
