"""Unpacking a stranger's archive: known names, plain files, no more bytes than are allowed."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from s2l.workloads.errors import one_line
from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.file_names import is_known
from s2l.workloads.sharing.limits import Limits

_CHUNK: Final = 1 << 20
_PLAIN: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)
_FOLDERS: Final = frozenset({"arrivals", "documents"})


def unpack_archive(archive: Path, folder: Path, limits: Limits) -> None:
    """Write the members to the new folder. Runs where a crash harms nobody, see ``Inspector``.

    Raises:
        NotTrusted: a member is no file of a dataset, or it is too large or damaged.
    """
    left = limits.total_bytes
    seen: set[str] = set()
    try:
        folder.mkdir()
        with _opened(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                name = _checked_name(archive, member, seen, folder)
                if name is None:
                    continue
                left -= member.size
                if left < 0 or len(seen) > limits.files:
                    raise _refused(archive, "unpacks to more than a dataset may be")
                _write(tar, member, folder / name)
    except (tarfile.TarError, OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise _refused(archive, one_line(error)) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise _refused(archive, f"damaged: {one_line(error)}") from None


def _checked_name(
    archive: Path, member: tarfile.TarInfo, seen: set[str], folder: Path
) -> str | None:
    """The member's name; None for the entries of folders, which are made as they are needed."""
    shown = member.name[:200]
    if member.isdir() and member.name.rstrip("/") in _FOLDERS | {"."}:
        return None
    if not is_known(member.name):
        raise _refused(archive, f"has {shown!r}, which is no file of a dataset")
    if member.type not in _PLAIN or member.issparse() or member.linkname:
        raise _refused(archive, f"{shown!r} is not a plain file")
    if member.name in seen:
        raise _refused(archive, f"has {shown!r} twice")
    tarfile.data_filter(member, str(folder))
    seen.add(member.name)
    return member.name


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with source, file.open("xb") as out:
        while chunk := source.read(_CHUNK):
            out.write(chunk)
    if file.stat().st_size != member.size:
        raise EOFError(f"cut short in {member.name}")


@contextmanager
def _opened(archive: Path) -> Iterator[IO[bytes]]:
    """The archive's bytes, unpacked as they are read; by what it is, not by its name."""
    with archive.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        stream: Any = file
        if head[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=file)
        elif head == b"\x28\xb5\x2f\xfd":
            stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
        yield stream


def _refused(archive: Path, why: str) -> NotTrusted:
    return NotTrusted(f"{archive}: refused: {why}")
