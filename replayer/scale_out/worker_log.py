"""Finished records of a worker, kept until they are fetched."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from s2l.replayer.monitor import ClientSample
from s2l.replayer.passes import Pass
from s2l.replayer.record import QuerySend, RequestRecord
from s2l.replayer.scale_out.journal import Journal

_NO_QUERY: Final = QuerySend("", 0)
_LENGTH_BYTES: Final = 4
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(RequestRecord).decode


@dataclass(frozen=True, slots=True)
class Parcel:
    """Records as bytes, each after its length, and samples of the client."""

    pieces: list[bytes]
    samples: list[ClientSample]


class WorkerLog:
    """Takes what is finished, on the event loop, and gives it away once.

    Each record becomes bytes as it ends, in some 5 µs: many at once would keep the next request
    waiting. They travel without their queries, which both sides know.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._pieces: list[bytes] = []
        self._samples: list[ClientSample] = []

    def add(self, record: RequestRecord) -> None:
        """Keep a record that is complete; its query is no more looked at."""
        record.query = _NO_QUERY
        encoded = _encode(record)
        piece = len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded
        self._pieces.append(piece)
        self._journal.add(piece)

    def put(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        """Keep the samples; the records were added one by one."""
        self._samples += samples

    def take(self) -> Parcel:
        """All that came since the last time; that one is known to have arrived."""
        self._journal.turn()
        parcel = Parcel(self._pieces, self._samples)
        self._pieces, self._samples = [], []
        return parcel


def unpacked(pieces: bytes, todo: Pass) -> Iterator[RequestRecord]:
    """The records of a parcel or a journal, with the queries of their pass."""
    view, at = memoryview(pieces), 0
    while at < len(pieces):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(view[at:begin], "little")
        record = _decode(view[begin:at])
        record.query = todo.queries[record.number % len(todo.queries)]
        yield record
