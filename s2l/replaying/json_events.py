"""A replay as it goes on, for machines: one JSON object a line."""

from datetime import UTC, datetime
from io import FileIO
from typing import Any, Final

import msgspec

from s2l.progress import say
from s2l.replaying.live_pass import PassMoment

STDOUT: Final = "-"
STDOUT_FD: Final = 1


class JsonEvents:
    """Writes ``started``, ``stage``, ``pass``, ``progress``, ``finding`` and ``finished``, each
    at once and with its time; ``-`` is standard output. What cannot be written ends no replay."""

    def __init__(self, path: str) -> None:
        """Raises OSError where the file cannot be written."""
        self._path = path
        target = STDOUT_FD if path == STDOUT else path
        # No buffer: each line is seen at once, and a reader that is gone leaves nothing behind.
        self._file: FileIO | None = FileIO(target, "w", closefd=path != STDOUT)

    def started(self, **what: Any) -> None:
        """The replay begins."""
        self._write("started", what)

    def stage(self, text: str) -> None:
        """What is done before anything is measured."""
        self._write("stage", {"text": text})

    def begun(self, name: str, planned: int | None) -> None:
        """A pass begins; of how many requests, where that is known."""
        self._write("pass", {"name": name, "planned": planned})

    def progress(self, at: PassMoment) -> None:
        """How far a pass is."""
        self._write("progress", msgspec.to_builtins(at))

    def finding(self, check: str, severity: str, text: str) -> None:
        """A check that did not pass."""
        self._write("finding", {"check": check, "severity": severity, "text": text})

    def finished(self, **what: Any) -> None:
        """The run is written."""
        self._write("finished", what)

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, event: str, what: dict[str, Any]) -> None:
        if self._file is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self._file.write(msgspec.json.encode({"event": event, "time_utc": now} | what) + b"\n")
        except OSError as error:  # whoever read them is gone, or the disk is full
            self.close()
            say(f"{self._path}: {error.strerror}; no more events are written, the replay goes on")
