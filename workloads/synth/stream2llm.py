"""What the published workloads of Stream2LLM have in common."""

from typing import Final

import numpy as np

from s2l.workloads.synth.draws import Curve, Floats, Ints, Source, correlated

QUESTION_TOKENS: Final = Curve(((0.002, 8), (0.5, 20), (0.9995, 60)))

_GAP_BY_PACE: Final = 0.3
"""How far a gap follows the pace of its query. It is not published; it is chosen so that what is
published of the durations comes out."""


def gaps_us(curve_s: Curve, counts: Ints, pace: Floats, source: Source) -> Ints:
    """All gaps of a block, in µs: one distribution for all, slow queries with the longer ones.

    ``counts`` are the gaps of each query, ``pace`` is a normal value for each.
    """
    slow = np.repeat(pace, counts)
    order = correlated(source.normals(len(slow)), slow, _GAP_BY_PACE)
    gaps: Ints = np.rint(1e6 * curve_s.quantiles(source.strata(order))).astype(np.int64)
    return gaps
