"""A run of one query as it is when it begins, for tests that write one."""

from s2l.replayer.record import ChunkSend, QuerySend
from s2l.replayer.run import RUN_FORMAT, Counts, RunInfo, Target, TraceRef, Validity

QUERY = QuerySend("q", 10, (ChunkSend(0, "append", 5, 5, 7, 7, 0, ("d",)),))


def begun(planned: int) -> RunInfo:
    """Nothing of what is planned was sent yet."""
    return RunInfo(
        format=RUN_FORMAT,
        created_utc="2026-01-01T00:00:00+00:00",
        command=["s2l", "replay"],
        options={},
        seed=0,
        trace=TraceRef(name="t", path="t", sha256=""),
        target=Target(url="http://127.0.0.1:1", adapter="none"),
        host={},
        packages={},
        schedule={},
        warmup={},
        passes=[],
        validity=Validity(verdict="valid"),
        counts=Counts(planned=planned, sent=0, succeeded=0, unsent=planned),
    )
