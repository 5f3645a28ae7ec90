"""The search for the highest rate at which a client is honest."""

import math

MOST_QPS = 2500
"""Beyond it the mock's own core is full, and its log of 50,000 requests too short for 20 s."""
CLOSE = 1.2


def next_rate(tried: dict[float, bool]) -> int | None:
    """The rate to try after those tried, which say whether the client was honest: twice the highest
    honest one until one is too high, then between these two, until they are within a fifth."""
    low = max((rate for rate, honest in tried.items() if honest), default=None)
    if low is None:
        return None
    high = min((rate for rate in tried if rate > low), default=None)
    if high is None:
        return round(min(2 * low, MOST_QPS)) if low * CLOSE < MOST_QPS else None
    return int(float(f"{math.sqrt(low * high):.2g}")) if high / low > CLOSE else None
