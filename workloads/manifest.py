"""``manifest.json``: what a trace is, how it was made, and which files belong to it."""

from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from s2l.workloads.errors import NotATrace, UnsupportedFormat

TRACE_FORMAT: Final = "s2l-trace/1"
MANIFEST: Final = "manifest.json"


class Collector(msgspec.Struct, frozen=True):
    """What made the trace, and with which options; enough to make it again."""

    name: str
    version: str
    options: dict[str, Any] = {}
    seed: int | None = None


class FileEntry(msgspec.Struct, frozen=True):
    """One file of the dataset: its path inside the folder, with forward slashes."""

    path: str
    rows: int
    bytes: int
    sha256: str


class TraceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the trace. ``failures`` counts arrivals by status, ``ok`` left out."""

    queries: int
    finished_queries: int
    arrivals: int
    documents: int
    failures: dict[str, int] = {}

    @property
    def incomplete_queries(self) -> int:
        """Queries whose retrieval was not recorded to its end."""
        return self.queries - self.finished_queries


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a finished trace. ``created_utc`` is ISO 8601."""

    format: str = TRACE_FORMAT
    name: str
    created_utc: str
    collector: Collector
    clock: str
    counts: TraceCounts
    licence: str
    privacy: str
    files: list[FileEntry]

    def encode(self) -> bytes:
        """The bytes of ``manifest.json``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def decode_manifest(data: bytes, path: Path) -> Manifest:
    """The manifest in ``data``, read from ``path``, which the errors name.

    Raises:
        NotATrace: it is not JSON, not a manifest of a trace, or lists a path outside.
        UnsupportedFormat: it has another major version.
    """
    try:
        head = msgspec.json.decode(data)
        _check_format(head, path)
        manifest = msgspec.convert(head, Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotATrace(f"{path}: damaged manifest: {error}") from None
    for entry in manifest.files:
        if not _is_inside(path.parent, entry.path):
            raise NotATrace(f"{path}: lists {entry.path!r}, which is not inside the folder")
    return manifest


def _check_format(head: object, path: Path) -> None:
    found = head.get("format") if isinstance(head, dict) else None
    family, _, version = found.partition("/") if isinstance(found, str) else ("", "", "")
    if family != "s2l-trace":
        raise NotATrace(f"{path}: not the manifest of a trace; its format must be {TRACE_FORMAT}")
    if version.partition(".")[0] != "1":
        raise UnsupportedFormat(f"{path}: trace format {found}; this version reads {TRACE_FORMAT}")


def _is_inside(folder: Path, name: str) -> bool:
    pure = PurePosixPath(name)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or {"\\", "\0"} & set(name):
        return False
    return (folder / name).resolve().is_relative_to(folder.resolve())
