"""What a point of a sweep came to: held against the objectives, delivery by delivery."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run
from s2l.reports.slo import Slo
from s2l.reports.slo_check import check_slos
from s2l.sweeping.record import SweepPoint, saturated_in


def judge_point(
    path: Path, rate_qps: float, deliveries: Sequence[str], slos: Sequence[Slo]
) -> SweepPoint:
    """Read the run of a point and hold it against the objectives.

    A run that is not valid meets none, and neither does a delivery that was saturated: its
    latencies grow as long as it goes on. One that answered nothing counts as saturated.

    Raises:
        RunError: the run cannot be read.
    """
    run = Run.open(path)
    requests = run.requests()
    unanswered = [d for d in deliveries if not _of(requests, d)["error_type"].null_count]
    validity, saturated = run.info.validity, [*saturated_in(run.info), *unanswered]
    why: dict[str, str] = {}
    meets: dict[str, bool] = {}
    for delivery in deliveries if slos else ():
        checks = check_slos(_of(requests, delivery), slos)
        reasons = [check.text for check in checks]
        if validity.verdict == "invalid":
            invalid = [f.text for f in validity.findings if f.severity == "invalid"]
            reasons = [f"not valid: {invalid[0]}" if invalid else "not valid", *reasons]
        elif delivery in saturated:
            reasons = ["saturated", *reasons]
        good = validity.verdict != "invalid" and delivery not in saturated
        meets[delivery] = good and all(check.met for check in checks)
        why[delivery] = "; ".join(reasons)
    return SweepPoint(
        rate_qps=rate_qps,
        run=path.name,
        verdict=validity.verdict,
        meets=meets,
        why=why,
        saturated=saturated,
    )


def _of(requests: pa.Table, delivery: str) -> pa.Table:
    return requests.filter(pc.equal(requests["delivery"], delivery))
