"""Writing archives of which the same content gives the same bytes."""

import gzip
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from s2l.workloads.durable import durable_file
from s2l.workloads.errors import TraceError, disk_error
from s2l.workloads.manifest import MANIFEST, Manifest
from s2l.workloads.sharing.address import ARCHIVES

_MODE: Final = 0o644


def write_archive(folder: Path, manifest: Manifest, out: Path) -> None:
    """Write the dataset's listed files to ``out``; its suffix says how it is compressed.

    The manifest is the first member and all others follow by name, without owners, rights and
    times of this machine. The tables are compressed already: plain ``.tar`` is as small, and its
    bytes depend on no compression library.

    Raises:
        TraceError: ``out`` has another suffix, is there already, or cannot be written.
    """
    if not out.name.endswith(ARCHIVES):
        raise TraceError(f"{out}: name it {', '.join('*' + suffix for suffix in ARCHIVES)}")
    if out.exists():
        raise TraceError(f"{out}: is there already; name a new file")
    names = [MANIFEST, *sorted(entry.path for entry in manifest.files)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            durable_file(out) as file,
            _compressed(file, out.name) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
        ):
            for name in names:
                _add(tar, folder / name, name)
    except OSError as error:
        raise disk_error(out, error) from None


def _add(tar: tarfile.TarFile, file: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.mode = _MODE
    with file.open("rb") as opened:
        member.size = file.stat().st_size
        tar.addfile(member, opened)


@contextmanager
def _compressed(file: Any, name: str) -> Iterator[IO[bytes]]:
    if name.endswith(".gz"):
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
    elif name.endswith(".zst"):
        with pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(file), "w"), "zstd") as packed:
            yield packed
    else:
        yield file


class _LeftOpen:
    """A file that Arrow may close: the durable one below it is still to be synced."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write
        self.flush = file.flush

    def close(self) -> None:
        """Leave the file open."""
