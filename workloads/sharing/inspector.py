"""A process that looks at strangers' files, so that whatever they do happens there."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.limits import Limits

_LINE_BYTES: Final = 65_536
_INHERITED: Final = ("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE")
"""What an interpreter needs to start. Nothing else goes along: there are tokens and keys in it."""

_ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "PYTHONFAULTHANDLER": "",
}


class Inspector:
    """Starts one process, which looks at each folder or archive in a child of its own.

    Memory, processor time and time of that child are limited; it may not write to files that
    are larger than a dataset may be, and its death is an answer like any other.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "s2l.workloads.sharing.inspection"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**_inherited(), **_ENVIRONMENT},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._running()
        if error is not None:
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def check(self, folder: Path) -> None:
        """Look at a dataset.

        Raises:
            NotTrusted: what is wrong with it, or how looking at it ended.
        """
        self._ask("check", [folder], folder)

    def unpack(self, archive: Path, folder: Path) -> None:
        """Unpack an archive into a new folder, of which nothing is looked at yet.

        Raises:
            NotTrusted: it is refused; the folder holds nothing that may be used.
        """
        self._ask("unpack", [archive, folder], archive)

    def _ask(self, what: str, paths: Sequence[Path], about: Path) -> None:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"what": what, "paths": list(map(str, paths)), "limits": asdict(self.limits)}
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline(_LINE_BYTES)
            answer: dict[str, Any] = json.loads(line)
        except (OSError, ValueError):
            raise NotTrusted(f"{about}: refused: the process that looked at it died") from None
        if answer["refused"] is not None:
            raise NotTrusted(str(answer["refused"]))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ValueError("the inspector is not started; use it in a with block")
        return self._process


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}
