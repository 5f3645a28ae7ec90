"""What a process that was killed had done can still be read."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np

from s2l.replayer.passes import Pass
from s2l.replayer.record import QuerySend, RequestRecord
from s2l.replayer.scale_out.journal import HALF_BYTES, Journal, JournalAddress, JournalReader
from s2l.replayer.scale_out.worker_log import WorkerLog, unpacked
from s2l.serving_adapter.base import Usage

CHILD = """
import json, sys
from s2l.replayer.scale_out.journal import Journal
journal = Journal()
journal.add(b"fetched")
journal.turn()
journal.add(b"on its way,")
journal.turn()
journal.add(b"never asked for")
journal.note_started(7)
address = journal.address
print(json.dumps([address.pid, address.descriptor, address.secret.hex()]), flush=True)
sys.stdin.read()
"""


def test_a_killed_process_leaves_what_was_not_fetched() -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pid, descriptor, secret = json.loads(child.stdout.readline())
        reader = JournalReader.at(JournalAddress(pid, descriptor, bytes.fromhex(secret)))
        other = JournalReader.at(JournalAddress(pid, descriptor, bytes(16)))
        child.kill()
    assert other is None  # the process of that number on another machine
    assert reader is not None
    assert reader.started == 7
    assert reader.pieces() in (b"on its way,never asked for", b"never asked foron its way,")
    assert JournalReader.at(JournalAddress(pid, descriptor, bytes.fromhex(secret))) is None
    assert JournalReader.at(None) is None


def test_what_does_not_fit_is_left_out() -> None:
    journal = Journal()
    reader = JournalReader.at(journal.address)
    assert reader is not None
    most = bytes(HALF_BYTES - 3)
    for piece in (most, b"four", b"six"):
        journal.add(piece)
    assert reader.pieces() == most + b"six"
    journal.note_started(3)
    journal.clear()
    assert (reader.pieces(), reader.started) == (b"", 0)


def test_records_travel_whole_and_find_their_query_again() -> None:
    queries = (QuerySend("a", 5), QuerySend("b", 9))
    todo = Pass("run", "wait", None, 2.0, queries, np.arange(4), np.arange(4) * 10)
    records = [todo.record(index, 100) for index in range(4)]
    for record in records[:2]:
        record.start_us = record.ask_us = record.start_intended_us + 1
        record.token_us, record.token_n, record.texts = [200, 300], [1, 2], ["é", " b"]
        record.usage, record.error_type = Usage(9, None, 3, found_tokens=0), None
    records[2].attempt_us, records[2].attempt_errors = [1, 2], ["refused: no"]
    records[2].handed_us = [None, 4]
    expected = [replace(record) for record in records]
    journal = Journal()
    log = WorkerLog(journal)
    for record in records:
        log.add(record)
    reader = JournalReader.at(journal.address)
    assert reader is not None
    assert _all(reader.pieces(), todo) == expected
    parcel = log.take()
    assert _all(b"".join(parcel.pieces), todo) == expected
    assert log.take().pieces == []
    assert reader.pieces() == b""


def _all(pieces: bytes, todo: Pass) -> list[RequestRecord]:
    return list(unpacked(pieces, todo))
