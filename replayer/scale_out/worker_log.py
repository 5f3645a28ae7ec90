"""Finished records of a worker, kept until they are fetched."""

import pickle
import threading
from typing import Final

from s2l.replayer.monitor import ClientSample
from s2l.replayer.passes import Pass
from s2l.replayer.record import QuerySend, RequestRecord

_NO_QUERY: Final = QuerySend("", 0)
PIECE: Final = 256
"""Records that are encoded at once; between pieces the event loop has its turn."""

Parcel = list[bytes]


class WorkerLog:
    """Takes records as the writer of a run does, and gives them away as bytes.

    Records travel without their queries, which both sides know.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[RequestRecord] = []
        self._samples: list[ClientSample] = []

    def put(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        """Keep what is finished."""
        with self._lock:
            self._records += records
            self._samples += samples

    def take(self) -> Parcel:
        """All that came since the last time."""
        with self._lock:
            records, self._records = self._records, []
            samples, self._samples = self._samples, []
        parcel = []
        for first in range(0, len(records), PIECE):
            piece = records[first : first + PIECE]
            for record in piece:
                record.query = _NO_QUERY
            parcel.append(pickle.dumps(piece, pickle.HIGHEST_PROTOCOL))
        return [*parcel, pickle.dumps(samples, pickle.HIGHEST_PROTOCOL)] if samples else parcel


def unpacked(parcel: Parcel, todo: Pass) -> tuple[list[RequestRecord], list[ClientSample]]:
    """The records and samples of a parcel, with the queries of their pass."""
    records: list[RequestRecord] = []
    samples: list[ClientSample] = []
    for piece in map(pickle.loads, parcel):
        for item in piece:
            if isinstance(item, ClientSample):
                samples.append(item)
                continue
            item.query = todo.queries[item.number % len(todo.queries)]
            records.append(item)
    return records, samples
