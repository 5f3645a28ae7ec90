"""How far a replay's clock drifts in an hour.

A timer is set for every 100 ms since the start, as the sending of a request is, and how late each
fires is noted. A chain of relative sleeps would be later and later; absolute deadlines are as late
in the last minute as in the first. Prints the figures as one JSON object on the last line:
``.venv/bin/python benchmarks/drift.py [--quick]``.
"""

import argparse
import asyncio
import json
from statistics import median

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.pacer import Pacer
from s2l.serving_adapter.event_loop import run

STEP_US = 100_000


async def lags_us(seconds: int) -> list[int]:
    """How late each timer fired."""
    clock, over = MonotonicClock(), asyncio.get_running_loop().create_future()
    pacer = Pacer(clock)
    lags: list[int] = []

    def fired() -> None:
        due_us = (len(lags) + 1) * STEP_US
        lags.append(pacer.now_us() - due_us)
        if due_us >= seconds * 1_000_000:
            over.set_result(None)
        else:
            pacer.call_at_us(due_us + STEP_US, fired)

    pacer.call_at_us(STEP_US, fired)
    await over
    clock.close()
    return lags


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute instead of an hour")
    quick = parser.parse_args().quick
    seconds = 60 if quick else 3600
    lags = run(lags_us(seconds))
    part = max(1, len(lags) // 60)
    first_us, last_us = median(lags[:part]), median(lags[-part:])
    figures = {
        "seconds": seconds,
        "first_lag_us": first_us,
        "last_lag_us": last_us,
        "drift_us": round(last_us - first_us, 1),
    }
    print(json.dumps({"quick": quick, **figures}))


if __name__ == "__main__":
    main()
