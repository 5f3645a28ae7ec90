"""What a stranger's dataset must hold before anything else looks at it."""

import os
import stat
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.workloads.errors import TraceError, one_line
from s2l.workloads.manifest import MANIFEST, FileEntry, Manifest, decode_manifest
from s2l.workloads.schema import FORMATS, RowFormat
from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.file_names import is_known, is_table
from s2l.workloads.sharing.limits import Limits
from s2l.workloads.trace import table_files
from s2l.workloads.validation import validate


def check_stranger(path: Path, limits: Limits) -> None:
    """Look at everything in the folder: names, kinds of files, sizes, hashes, and only then rows.

    Raises:
        NotTrusted: the first thing that is wrong.
    """
    manifest = checked_manifest(path, limits)
    _check_folder(path, manifest)
    for entry in manifest.files:
        _check_bytes(path, entry)
    try:
        for rows in FORMATS:
            _check_table(path, manifest, rows, limits)
    except (TraceError, pa.ArrowException, OSError, ValueError) as error:
        raise error if isinstance(error, NotTrusted) else _refused(path, one_line(error)) from None
    if problems := validate(path):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise _refused(path, f"{problems[0]}{more}")


def checked_manifest(path: Path, limits: Limits) -> Manifest:
    """The manifest, when it names only files that a dataset may have, of bearable sizes.

    Raises:
        NotTrusted: otherwise.
    """
    file = path / MANIFEST
    try:
        _check_regular(file)
        if file.stat().st_size > limits.manifest_bytes:
            raise _refused(file, f"larger than {limits.manifest_bytes:,} bytes")
        return decode_checked(file.read_bytes(), file, limits)
    except OSError as error:
        raise _refused(file, error.strerror or one_line(error)) from None


def decode_checked(data: bytes, file: Path, limits: Limits) -> Manifest:
    """As ``checked_manifest``, of bytes that came from elsewhere."""
    try:
        manifest = decode_manifest(data, file)
    except (TraceError, RecursionError, OSError, ValueError) as error:
        raise _refused(file, one_line(error)) from None
    names = [entry.path for entry in manifest.files]
    for name in names:
        if name == MANIFEST or not is_known(name):
            raise _refused(file, f"lists {name[:200]!r}, which is no file of a dataset")
    if len(set(names)) < len(names) or len(names) > limits.files:
        raise _refused(file, f"lists a file twice, or more than {limits.files:,}")
    if any(entry.bytes < 0 or entry.rows < 0 for entry in manifest.files):
        raise _refused(file, "lists sizes below 0")
    if sum(entry.bytes for entry in manifest.files) > limits.total_bytes:
        raise _refused(file, f"lists more than {limits.total_bytes:,} bytes")
    if sum(entry.rows for entry in manifest.files) > limits.rows:
        raise _refused(file, f"lists more than {limits.rows:,} rows")
    return manifest


def _check_folder(path: Path, manifest: Manifest) -> None:
    """Only folders and regular files that are listed; no links, no devices."""
    listed = {entry.path for entry in manifest.files} | {MANIFEST}
    for folder, folders, files in os.walk(path, followlinks=False):
        here = Path(folder).relative_to(path)
        for name in folders:
            if (here / name).as_posix() not in ("arrivals", "documents"):
                raise _refused(path, f"has a folder {(here / name).as_posix()!r}")
            if not stat.S_ISDIR((Path(folder) / name).lstat().st_mode):
                raise _refused(path, f"{(here / name).as_posix()!r} is a link")
        for name in files:
            place = (here / name).as_posix()
            _check_regular(path / place)
            if place not in listed and is_known(place) and is_table(place):
                raise _refused(path, f"{place} is not listed in the manifest")
            if place not in listed and not is_known(place):
                raise _refused(path, f"has a file {place!r}, which is none of a dataset")


def _check_regular(file: Path) -> None:
    if not stat.S_ISREG(file.lstat().st_mode):
        raise _refused(file, "not a regular file")


def _check_bytes(path: Path, entry: FileEntry) -> None:
    file = path / entry.path
    try:
        _check_regular(file)
        if (size := file.stat().st_size) != entry.bytes:
            raise _refused(file, f"has {size} bytes; the manifest says {entry.bytes}")
        with file.open("rb") as opened:
            digest = file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise _refused(file, error.strerror or one_line(error)) from None
    if digest != entry.sha256:
        raise _refused(file, "its sha256 is not the one that the manifest says")


def _check_table(path: Path, manifest: Manifest, rows: RowFormat[Any], limits: Limits) -> None:
    for file in table_files(path, manifest, rows):
        _check_footer(file.path, limits)
        file.check()
        for batch in file.batches():
            batch.validate(full=True)  # offsets, and that texts are UTF-8
            for problem in _row_problems(batch, limits):
                raise _refused(file.path, problem)


def _check_footer(file: Path, limits: Limits) -> None:
    with pq.ParquetFile(file) as opened:
        meta = opened.metadata
        claimed = sum(meta.row_group(n).total_byte_size for n in range(meta.num_row_groups))
    if claimed > limits.expansion * max(file.stat().st_size, 4096):
        raise _refused(file, f"says that it unpacks to {claimed:,} bytes")


def _row_problems(batch: pa.RecordBatch, limits: Limits) -> Iterator[str]:
    for name, most in (
        ("query_id", limits.id_chars),
        ("doc_id", limits.id_chars),
        ("status", limits.id_chars),
        ("text", limits.text_chars),
        ("url", limits.url_chars),
        ("title", limits.meta_chars),
        ("detail", limits.meta_chars),
        ("meta", limits.meta_chars),
    ):
        if name in batch.schema.names and _most(pc.binary_length(batch.column(name))) > most:
            yield f"{name} is longer than {most:,} bytes"
    if "doc_ids" in batch.schema.names:
        ids = batch.column("doc_ids")
        if _most(pc.list_value_length(ids)) > limits.documents_per_arrival:
            yield f"an arrival with more than {limits.documents_per_arrival:,} documents"
    for name, most in (("arrival_us", limits.arrival_us), ("offset_us", limits.offset_us)):
        if name in batch.schema.names and _most(batch.column(name)) > most:
            yield f"{name} is beyond {most / 86_400e6:,.0f} days"


def _most(column: pa.Array) -> int:
    return pc.max(column).as_py() or 0


def _refused(path: Path, why: str) -> NotTrusted:
    return NotTrusted(f"{path}: refused: {why.removeprefix(f'{path}: ')}")
