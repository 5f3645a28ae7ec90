"""Checking everything that a trace promises, and naming every place where it does not hold."""

from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Any

from s2l.workloads.errors import TraceError, TraceNotFound, disk_error
from s2l.workloads.manifest import MANIFEST, FileEntry, Manifest, decode_manifest
from s2l.workloads.problem import Findings, Problem
from s2l.workloads.row_checks import ArrivalChecks, DocumentChecks, QueryChecks
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, FORMATS, QUERIES, RowFormat
from s2l.workloads.trace import read_manifest_bytes, table_files


def validate(path: Path) -> list[Problem]:
    """All that is wrong with the trace at ``path``; nothing, for a good one.

    Rows are streamed; what is kept is the ids of queries and documents. Of each file, at most
    ``Findings.LIMIT`` problems are listed, then their number.

    Raises:
        TraceNotFound: nothing is there.
    """
    findings = Findings()
    try:
        manifest = decode_manifest(read_manifest_bytes(path), path / MANIFEST)
    except TraceNotFound:
        raise
    except TraceError as error:
        return [Problem(MANIFEST, None, str(error))]
    _check_files(path, manifest, findings)
    queries = QueryChecks(findings)
    documents = DocumentChecks(findings, hidden=manifest.privacy != "full")
    _check_rows(path, manifest, QUERIES, queries, findings)
    _check_rows(path, manifest, DOCUMENTS, documents, findings)
    arrivals = ArrivalChecks(findings, queries.places, documents.ids)
    _check_rows(path, manifest, ARRIVALS, arrivals, findings)
    _check_counts(manifest, queries, documents, arrivals, findings)
    return findings.problems()


def _check_files(path: Path, manifest: Manifest, findings: Findings) -> None:
    listed = {entry.path for entry in manifest.files}
    for name in sorted(_parquet_files(path) - listed):
        findings.add(name, None, "not listed in the manifest")
    for entry in manifest.files:
        file = path / entry.path
        if not file.is_file():
            continue  # its table names it, once
        try:
            _check_bytes(file, entry, findings)
        except OSError as error:
            findings.add(entry.path, None, str(disk_error(file, error)))


def _check_bytes(file: Path, entry: FileEntry, findings: Findings) -> None:
    if (size := file.stat().st_size) != entry.bytes:
        findings.add(entry.path, None, f"has {size} bytes; the manifest says {entry.bytes}")
    with file.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
    if digest != entry.sha256:
        findings.add(entry.path, None, f"sha256 is {digest}; manifest says {entry.sha256}")


def _parquet_files(path: Path) -> set[str]:
    found = set(path.glob("*.parquet"))
    for rows in FORMATS:
        found.update(path.glob(f"{rows.name}/*.parquet"))
    return {file.relative_to(path).as_posix() for file in found}


def _check_rows(
    path: Path, manifest: Manifest, rows: RowFormat[Any], checks: Any, findings: Findings
) -> None:
    try:
        files = table_files(path, manifest, rows)
    except TraceError as error:
        findings.add(MANIFEST, None, str(error))
        return
    for file in files:
        name = file.path.relative_to(path).as_posix()
        row = 0
        try:
            for batch in file.batches():
                for values in _values(batch):
                    checks.row(name, row, *values)
                    row += 1
        except (TraceError, UnicodeDecodeError) as error:
            findings.add(name, None, str(error))


def _values(batch: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _check_counts(
    manifest: Manifest,
    queries: QueryChecks,
    documents: DocumentChecks,
    arrivals: ArrivalChecks,
    findings: Findings,
) -> None:
    said = manifest.counts
    for what, found, expected in (
        ("queries", queries.rows, said.queries),
        ("finished_queries", arrivals.finished, said.finished_queries),
        ("arrivals", arrivals.rows, said.arrivals),
        ("documents", documents.rows, said.documents),
        ("failures", dict(arrivals.failures), said.failures),
    ):
        if found != expected:
            findings.add(MANIFEST, None, f"counts.{what} is {expected}; the files have {found}")
