"""The mock's own times of each request, as JSON lines."""

from collections import deque
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

KEPT: Final = 50_000
"""Entries that ``/mock/log`` can give: the newest."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One request. Times are nanoseconds of ``CLOCK_MONOTONIC``, which clients on the same machine
    can read too; ``_due_ns`` is when something should have been written, and ``_ns`` when it was.

    ``arrived_ns`` is the last byte of the request, ``start_ns`` the end of queueing. ``outcome`` is
    ``ok``, ``aborted`` (the client was gone before the end) or the fault.
    """

    number: int
    request_id: str
    endpoint: str
    arrived_ns: int
    outcome: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    start_ns: int | None = None
    first_due_ns: int | None = None
    first_ns: int | None = None
    last_due_ns: int | None = None
    last_ns: int | None = None


class RequestLog:
    """Keeps the newest entries, and writes all of them to a file where one is named."""

    def __init__(self, path: Path | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._path = path
        self._file: FileIO | None = None

    def __enter__(self) -> "RequestLog":
        if self._path is not None:
            self._file = self._path.open("wb", buffering=0)  # whole even if the server is killed
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, entry: Entry) -> None:
        """Note a request that is over."""
        self._entries.append(entry)
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry) + b"\n")

    def lines(self) -> bytes:
        """The newest entries, a line each."""
        return b"".join(msgspec.json.encode(entry) + b"\n" for entry in self._entries)

    def clear(self) -> None:
        """Forget the entries; the file keeps them."""
        self._entries.clear()
