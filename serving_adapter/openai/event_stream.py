"""Server-sent events out of bytes that were cut anywhere.

https://html.spec.whatwg.org/multipage/server-sent-events.html, with two additions seen in the
field: an ``error:`` line (llama.cpp) counts as data, and data whose empty line is missing at the
end of the body still counts.
"""

from collections.abc import Callable
from typing import Final

MAX_EVENT_BYTES: Final = 64 * 2**20

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = (b"data", b"error")


class EventStream:
    """Calls ``on_data`` with the data of each event as soon as its last byte is there.

    Work is linear in the bytes, however they are cut. ``on_overflow`` is called when an event
    grows beyond ``MAX_EVENT_BYTES``; what follows is not read.
    """

    __slots__ = ("_after_cr", "_data", "_first", "_held", "_line", "_on_data", "_on_overflow")

    def __init__(self, on_data: Callable[[bytes], None], on_overflow: Callable[[], None]) -> None:
        self._on_data, self._on_overflow = on_data, on_overflow
        self._line: list[bytes] = []  # the pieces of a line that is not complete
        self._data: list[bytes] = []  # the data lines of an event that is not complete
        self._held = 0  # bytes in both
        self._first = True
        self._after_cr = False

    def feed(self, data: bytes) -> None:
        """Read on."""
        if (
            not self._held
            and not self._after_cr
            and data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
        ):
            # By far the most frequent case: exactly one event of one line.
            self._first = False
            self._on_data(data[6:-2])
        else:
            self._feed_any(data)

    def end(self) -> None:
        """The body is over."""
        self._dispatch()

    def _feed_any(self, data: bytes) -> None:
        if not data:
            return
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        for line in data.splitlines(keepends=True):
            if line.endswith((b"\n", b"\r")):
                self._complete(line)
            else:
                self._hold(self._line, line)
        self._after_cr = data.endswith(b"\r")

    def _complete(self, line: bytes) -> None:
        if self._line:
            self._line.append(line)
            line = b"".join(self._line)
            self._held = sum(map(len, self._data))
            self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        self._read(line.rstrip(b"\r\n"))

    def _read(self, line: bytes) -> None:
        if not line:
            self._dispatch()
            return
        name, _, value = line.partition(b":")
        if name in _DATA:
            self._hold(self._data, value.removeprefix(b" "))

    def _dispatch(self) -> None:
        if self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            self._held = sum(map(len, self._line))
            self._on_data(data)

    def _hold(self, pieces: list[bytes], piece: bytes) -> None:
        self._held += len(piece) + 1
        if self._held <= MAX_EVENT_BYTES:
            pieces.append(piece)
        else:
            self._line.clear()
            self._data.clear()
            self._on_overflow()
