"""Datasets and archives that mean harm, or are merely broken."""

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s2l.workloads.sharing.archive import write_archive
from s2l.workloads.sharing.cache import TraceCache
from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.inspector import Inspector
from s2l.workloads.sharing.limits import GiB, Limits, MiB
from s2l.workloads.sharing.pulling import Puller
from s2l.workloads.trace import Trace

ARRIVALS, DOCUMENTS = "arrivals/part-00000.parquet", "documents/part-00000.parquet"


@pytest.fixture(scope="module")
def inspector() -> Iterator[Inspector]:
    """One for all: whatever a look meets, the next is in another child."""
    with Inspector() as inspector:
        yield inspector


def refusal(inspector: Inspector, path: Path) -> str:
    """Why the folder is refused."""
    with pytest.raises(NotTrusted) as refused:
        inspector.check(path)
    return str(refused.value)


def test_a_good_one_passes(inspector: Inspector, ready: Trace, trace_path: Path) -> None:
    inspector.check(ready.path)
    inspector.check(trace_path)


@pytest.mark.parametrize(
    ("file", "column", "value", "why"),
    [
        (ARRIVALS, "arrival_us", 1 << 60, "arrival_us is beyond 30 days"),
        (ARRIVALS, "arrival_us", 4_999, "is before the one before"),
        (ARRIVALS, "start_us", -5, "start_us -5 is not in"),
        (ARRIVALS, "query_id", "nobody", "is not in queries.parquet"),
        ("queries.parquet", "offset_us", 1 << 60, "offset_us is beyond"),
        ("queries.parquet", "query_id", "x" * 600, "query_id is longer than 512"),
        (DOCUMENTS, "text", "other", "text_sha256 is not that of the text"),
        (DOCUMENTS, "meta", "[" * 100_000, "meta is not a JSON object"),
    ],
)
def test_rows_that_are_wrong(
    inspector: Inspector,
    ready: Trace,
    rewrite_in: Any,
    file: str,
    column: str,
    value: object,
    why: str,
    small: Any,
) -> None:
    rewrite_in(ready.path, file, small.set_value(2, column, value))
    assert why in refusal(inspector, ready.path)


@pytest.fixture
def rewrite_in() -> Callable[[Path, str, Callable[[pa.Table], pa.Table]], None]:
    def change(folder: Path, name: str, edit: Callable[[pa.Table], pa.Table]) -> None:
        pq.write_table(edit(pq.ParquetFile(folder / name).read()), folder / name)
        reseal(folder, name)

    return change


def reseal(folder: Path, name: str) -> None:
    """Let the manifest promise what the file now is."""
    data = (folder / name).read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    entry = next(one for one in manifest["files"] if one["path"] == name)
    entry |= {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_texts_that_are_not_utf8(inspector: Inspector, ready: Trace, rewrite_in: Any) -> None:
    def edit(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("title")
        bad = pa.array([b"\xff\xfe"] * len(table), pa.binary()).cast(pa.string(), safe=False)
        return table.set_column(place, "title", bad)

    rewrite_in(ready.path, DOCUMENTS, edit)
    assert "refused" in refusal(inspector, ready.path)


@pytest.mark.parametrize(
    "name", ["../queries.parquet", "/etc/passwd", "arrivals/../../x.parquet", "run.py", "wal/x"]
)
def test_paths_that_leave_the_folder(inspector: Inspector, ready: Trace, name: str) -> None:
    file = ready.path / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["files"][0]["path"] = name
    file.write_text(json.dumps(manifest))
    assert "refused" in refusal(inspector, ready.path)


def test_other_files_links_and_pipes(inspector: Inspector, ready: Trace) -> None:
    extra = ready.path / "setup.py"
    extra.write_text("raise SystemExit('executed')")
    assert "has a file 'setup.py'" in refusal(inspector, ready.path)
    extra.unlink()
    queries = ready.path / "queries.parquet"
    queries.rename(ready.path.parent / "queries.parquet")
    queries.symlink_to(ready.path.parent / "queries.parquet")
    assert "not inside the folder" in refusal(inspector, ready.path)
    queries.unlink()
    queries.symlink_to(ready.path / "README.md")
    assert "not a regular file" in refusal(inspector, ready.path)
    queries.unlink()
    os.mkfifo(queries)
    assert "not a regular file" in refusal(inspector, ready.path)


def test_a_manifest_that_nests_or_claims_too_much(inspector: Inspector, ready: Trace) -> None:
    file = ready.path / "manifest.json"
    good = json.loads(file.read_text())
    file.write_bytes(b"[" * 1_000_000)
    assert "refused" in refusal(inspector, ready.path)
    good["files"][0]["bytes"] = 1 << 50
    file.write_text(json.dumps(good))
    assert "lists more than" in refusal(inspector, ready.path)


def test_a_small_file_that_unpacks_to_much(ready: Trace, rewrite_in: Any) -> None:
    def edit(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("title")
        huge = pa.array(["0" * (40 * MiB)] * len(table), pa.string())
        return table.set_column(place, "title", huge)

    rewrite_in(ready.path, DOCUMENTS, edit)
    assert (ready.path / DOCUMENTS).stat().st_size < 2 * MiB
    for expansion, why in ((10, "says that it unpacks to"), (1 << 40, "title is longer than")):
        with Inspector(Limits(expansion=expansion)) as inspector:
            assert why in refusal(inspector, ready.path)


def test_time_is_limited(tmp_path: Path) -> None:
    """A pipe into which nobody writes never ends."""
    os.mkfifo(tmp_path / "endless.tar")
    with (
        Inspector(Limits(wall_s=1)) as inspector,
        pytest.raises(NotTrusted, match="took too long"),
    ):
        inspector.unpack(tmp_path / "endless.tar", tmp_path / "out")


def member(name: str, data: bytes = b"x", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a tar."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, data


EVIL = {
    "dots": member("../manifest.json"),
    "absolute": member("/tmp/manifest.json"),
    "inner dots": member("arrivals/../../evil.parquet"),
    "link": member("queries.parquet", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": member("queries.parquet", b"", type=tarfile.LNKTYPE, linkname="manifest.json"),
    "device": member("queries.parquet", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
    "pipe": member("queries.parquet", b"", type=tarfile.FIFOTYPE),
    "program": member("setup.py"),
    "hidden": member("arrivals/.evil.parquet"),
    "folder that is a link": member("arrivals", b"", type=tarfile.SYMTYPE, linkname="/tmp"),
    "long name": member("arrivals/" + "a" * 300 + ".parquet"),
    "nul": member("queries.parquet\0../x"),
}


@pytest.mark.parametrize("what", EVIL)
def test_evil_archives(inspector: Inspector, what: str, tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in (member("manifest.json", b"{}"), EVIL[what]):
            tar.addfile(info, io.BytesIO(data))
    if what == "nul":  # the format ends names there
        inspector.unpack(archive, tmp_path / "out")
        assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
            "manifest.json",
            "queries.parquet",
        ]
        return
    with pytest.raises(NotTrusted, match="refused"):
        inspector.unpack(archive, tmp_path / "out")
    assert {file.name for file in tmp_path.iterdir()} <= {"evil.tar", "out"}
    assert {file.name for file in (tmp_path / "out").iterdir()} <= {"manifest.json"}


def test_a_bomb(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("queries.parquet")
        info.size = 64 * MiB
        tar.addfile(info, io.BytesIO(bytes(64 * MiB)))
    assert archive.stat().st_size < 2 * MiB
    with Inspector(Limits(total_bytes=8 * MiB)) as inspector:
        with pytest.raises(NotTrusted, match="unpacks to more"):
            inspector.unpack(archive, tmp_path / "out")
        assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) <= 8 * MiB


def test_an_endless_header(tmp_path: Path) -> None:
    """A header that claims a gigabyte of names is read by the library into memory."""
    archive = tmp_path / "header.tar.gz"
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, GiB
    # Parts of a gzip file follow each other: the same one, again and again, is a gigabyte.
    archive.write_bytes(gzip.compress(info.tobuf()) + 64 * gzip.compress(bytes(16 * MiB), 1))
    with (
        Inspector(Limits(memory_bytes=GiB)) as inspector,
        pytest.raises(NotTrusted, match="refused"),
    ):
        inspector.unpack(archive, tmp_path / "out")


def test_cut_and_garbled_archives(ready: Trace, tmp_path: Path) -> None:
    for suffix in (".tar", ".tar.gz", ".tar.zst"):
        archive = tmp_path / f"a{suffix}"
        write_archive(ready.path, ready.manifest, archive)
        data = archive.read_bytes()
        archive.write_bytes(data[: len(data) // 3])
        with pytest.raises(NotTrusted):
            Puller(TraceCache(tmp_path / "cache")).pull(str(archive))


def test_the_same_content_makes_the_same_archive(ready: Trace, tmp_path: Path) -> None:
    for suffix in (".tar", ".tar.gz", ".tar.zst"):
        first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
        write_archive(ready.path, ready.manifest, first)
        for file in ready.path.rglob("*"):
            os.utime(file, (1, 1))
        write_archive(ready.path, ready.manifest, second)
        assert first.read_bytes() == second.read_bytes()
    with tarfile.open(tmp_path / "a.tar") as tar:
        members = tar.getmembers()
    assert members[0].name == "manifest.json"
    assert {(one.mtime, one.uid, one.gid, one.uname, one.mode) for one in members} == {
        (0, 0, 0, "", 0o644)
    }


def test_the_process_that_looks_has_no_secrets(
    ready: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "S2L_PUSH_TOKEN", "TAVILY_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "canary")
    with Inspector() as inspector:
        inspector.check(ready.path)
        assert inspector._process is not None
        environment = Path(f"/proc/{inspector._process.pid}/environ").read_bytes()
    assert b"canary" not in environment
    names = {line.partition(b"=")[0].decode() for line in environment.split(b"\0") if line}
    own = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL"}
    inherited = {"PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE"}
    assert own <= names <= own | inherited | {"PYTHONFAULTHANDLER"}
