"""Keeps a judge's replies on disk by what it was asked, so that nothing is paid for twice."""

from pathlib import Path

import msgspec

from s2l.reports.judge import Reply
from s2l.workloads.durable import write_durably


class JudgeCache:
    """A folder with a small file for each reply, named by the hash of the request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Reply | None:
        """The reply that is kept; None where there is none, or only a damaged one."""
        try:
            return msgspec.json.decode(self._file(key).read_bytes(), type=Reply)
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply.

        Raises:
            OSError: the disk does not take it.
        """
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, msgspec.json.encode(reply))

    def _file(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
