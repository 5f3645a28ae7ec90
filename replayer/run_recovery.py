"""Makes a run of what a killed replay left: tables of its journal, and a ``run.json``."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.known_pass import KnownPass
from s2l.replayer.record import RequestRecord
from s2l.replayer.rows import chunk_rows, request_rows
from s2l.replayer.run import Counts, Finding, PassWindow, Run, RunError, RunInfo, Validity
from s2l.replayer.run_journal import (
    JOURNALED,
    has_journal,
    log_path,
    read_batches,
    read_begun,
    remove_journal,
)
from s2l.replayer.run_lock import RESERVE, lock_run
from s2l.replayer.run_writer import RunNotWritten
from s2l.replayer.table_writer import GROUP_ROWS, TableWriter
from s2l.replayer.validity import INVALID
from s2l.workloads.durable import write_durably

_INFO: Final = "run.json"
_ASIDE: Final = tuple(
    f"{name}.tmp" for name in (*(f"{t}.parquet" for t in (*JOURNALED, "queries", "server")), _INFO)
)


class StillWritten(RunError):
    """Another process writes the run, or recovers it."""


def was_killed(path: Path) -> bool:
    """Whether a run began there that has no end; its replay may still be under way."""
    return has_journal(path) and not (path / _INFO).is_file()


def recover_run(path: Path) -> RunInfo:
    """Make the folder a run with all that is known, and say what it holds. A folder that is one
    already stays as it is.

    Raises:
        StillWritten: its replay, or another recovery, is under way.
        RunError: there is nothing to recover, or it is damaged.
        RunNotWritten: the disk does not take it.
    """
    if not has_journal(path):
        return Run.open(path).info
    try:
        held = lock_run(path)
    except BlockingIOError:
        if not was_killed(path):
            return Run.open(path).info  # all that is left to do is to remove the journal
        raise StillWritten(f"{path}: its replay is still under way; wait for its end") from None
    try:
        if was_killed(path):
            _rebuild(path)
        info = Run.open(path).info
        _tidy(path)
    except OSError as error:
        raise RunNotWritten(f"{path}: cannot recover the run: {error.strerror}") from error
    finally:
        os.close(held)
    return info


def _rebuild(path: Path) -> None:
    begun, planned = read_begun(path)
    known = {(p.delivery, p.answer_at): KnownPass(p) for p in planned.restored()}
    tables = {
        name: TableWriter(path / f"{name}.parquet", schema, lambda _: False)
        for name, schema in JOURNALED.items()
    }
    try:
        _fill(path, tables, known)
        windows = [one.window for one in known.values() if one.window is not None]
        _add_unsent(tables, list(known.values()), windows)
        for table in tables.values():
            table.finish()
    finally:
        for table in tables.values():
            table.discard()
    info = _ended(begun, list(known.values()), windows)
    ended_ns = log_path(path, "requests").stat().st_mtime_ns
    write_durably(path / _INFO, msgspec.json.format(msgspec.json.encode(info), indent=2))
    os.utime(path / _INFO, ns=(ended_ns, ended_ns))  # the newest run is the one that ended last


def _fill(
    path: Path,
    tables: dict[str, TableWriter],
    known: dict[tuple[str, str | None], KnownPass],
) -> None:
    """Requests and their chunks were appended in pairs, so the shorter log tells how many of
    both are whole."""
    pairs = zip(read_batches(path, "requests"), read_batches(path, "chunks"), strict=False)
    for requests, chunks in pairs:
        tables["requests"].add(requests)
        tables["chunks"].add(chunks)
        for key, one in known.items():
            if (mine := requests.filter(_of(requests, key))).num_rows:
                one.add(mine)
    for samples in read_batches(path, "client"):
        tables["client"].add(samples)
        columns = (samples[name].to_pylist() for name in ("delivery", "answer_at", "time_us"))
        for delivery, answer_at, time_us in zip(*columns, strict=True):
            known[delivery, answer_at].add_sample(time_us)


def _of(rows: pa.RecordBatch, key: tuple[str, str | None]) -> pa.Array:
    delivery, answer_at = key
    at = rows["answer_at"]
    asked = pc.is_null(at) if answer_at is None else pc.fill_null(pc.equal(at, answer_at), False)
    return pc.and_(pc.equal(rows["delivery"], delivery), asked)


def _add_unsent(
    tables: dict[str, TableWriter], known: Sequence[KnownPass], windows: Sequence[PassWindow]
) -> None:
    """What was under way, or never started, has no row in the journal."""
    end_us = max((window.end_us for window in windows), default=0)
    for one in known:
        records = _unsent(one, end_us)
        while part := list(islice(records, GROUP_ROWS)):
            tables["requests"].add(request_rows(part))
            tables["chunks"].add(chunk_rows(part))


def _unsent(one: KnownPass, end_us: int) -> Iterator[RequestRecord]:
    start_us = one.window.start_us if one.window else end_us
    return (one.todo.record(place, start_us) for place in one.left())


def _ended(begun: RunInfo, known: Sequence[KnownPass], windows: list[PassWindow]) -> RunInfo:
    ended: Counter[str | None] = sum((one.ended for one in known), Counter())
    unsent = sum(one.unsent for one in known)
    sent = ended.total()
    failed = {kind: n for kind, n in ended.items() if kind is not None}
    counts = Counts(
        planned=sent + unsent,
        sent=sent,
        succeeded=ended[None],
        unsent=unsent,
        failed=dict(sorted(failed.items())),
    )
    of = f"{sent:,} of {counts.planned:,}" if begun.counts.planned else f"{sent:,}"
    text = f"the replay was killed: {of} requests are known"
    killed = Finding(check="killed", severity=INVALID, text=text)
    validity = Validity(verdict=INVALID, findings=[killed, *begun.validity.findings])
    return msgspec.structs.replace(begun, passes=windows, validity=validity, counts=counts)


def _tidy(path: Path) -> None:
    """The lock's file goes last: until then nobody else begins."""
    for name in _ASIDE:
        (path / name).unlink(missing_ok=True)
    remove_journal(path)
    (path / RESERVE).unlink(missing_ok=True)
