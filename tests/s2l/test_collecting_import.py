"""An import by several workers is byte for byte the import by one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.collecting.importing import BY_FILES, BY_ROWS, ImportRequest, import_with
from s2l.collecting.share import ByFiles
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.ragpulse import COMPONENTS, TRACE_FILE
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.manifest import FileEntry
from s2l.workloads.synth.text import WordTexts
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate

sys.path.insert(0, str(Path(__file__).parent))
from thread_crew import InThreads

PROVENANCE = Provenance("t", "1", "CC0-1.0", 3)
N = 40


def _lines(path: Path, rows: list[Any]) -> Path:
    path.write_text(
        "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    )
    return path


def _mooncake(folder: Path) -> Path:
    """Shared blocks, a bad row, rows that follow those of their session."""
    rows: list[Any] = [
        {"timestamp": 100 * n, "input_length": 600, "output_length": 3, "hash_ids": [n % 3, n]}
        for n in range(N)
    ]
    rows[5] = "no JSON\n"
    del rows[30]["timestamp"]
    rows[30] |= {"session_id": "s", "delay": 7}
    rows[4] |= {"session_id": "s"}
    return _lines(folder / "mooncake.jsonl", rows)


def _guidellm(folder: Path) -> Path:
    """Two files in one folder; times that run backwards."""
    (folder / "guidellm").mkdir()
    for name in "ab":
        rows = [
            {
                "prompt_tokens_count": 9 + n,
                "output_tokens_count": 2,
                "relative_timestamp": (9 - n) / 4,
            }
            for n in range(10)
        ]
        _lines(folder / "guidellm" / f"{name}.jsonl", rows)
    return folder / "guidellm"


def _azure(folder: Path) -> Path:
    rows = [f"2023-11-16 18:15:{n % 60:02}.6805900,{50 + n},{n}\r\n" for n in reversed(range(N))]
    rows[7] = "yesterday,5,5\r\n"
    return _lines(folder / "azure.csv", ["TIMESTAMP,ContextTokens,GeneratedTokens\r\n", *rows])


def _burstgpt(folder: Path) -> Path:
    head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
    rows = [f"{n // 3},{n},1.5,m,{10 + n},2,{12 + n},log\n" for n in range(N)]
    return _lines(folder / "burstgpt.csv", [f"{head}Log Type\n", *rows])


def _ragpulse(folder: Path) -> Path:
    """Side files that are larger than the trace itself."""
    (folder / "ragpulse").mkdir()
    for component in COMPONENTS:
        rows = [{component.id_key: n, "token_length": 5 + n} for n in range(60)]
        _lines(folder / "ragpulse" / component.file, rows)
    trace = [
        {
            "timestamp": str((7 * n) % 10),
            "input_length": 50,
            "output_length": 4,
            "hash_ids": {
                "sys_prompt": [0],
                "passages_ids": [n % 50, n % 7],
                "user_input": [n % 60],
            },
        }
        for n in range(N)
    ]
    _lines(folder / "ragpulse" / TRACE_FILE, trace)
    return folder / "ragpulse"


def _crawl(folder: Path) -> Path:
    """Pages that queries share, a file without a search, one that is no table."""
    (folder / "crawl").mkdir()
    for n in range(N):
        rows = ["type,startTime,endTime,query,content\n", f"tavily_search,1.5,2,what is {n}?,\n"]
        rows += [f"page_scrape,2,{3 + n % 4},,page {n % 9}\n", "page_scrape,2,9,,\n"]
        if n == 11:
            del rows[1]
        _lines(folder / "crawl" / f"query_{n}.csv", ["nothing\n"] if n == 20 else rows)
    return folder / "crawl"


SOURCES: dict[str, Callable[[Path], Path]] = {
    "mooncake": _mooncake,
    "timed-trace": _mooncake,
    "guidellm": _guidellm,
    "azure": _azure,
    "burstgpt": _burstgpt,
    "ragpulse": _ragpulse,
    "stream2llm-crawl": _crawl,
}


def _delays(folder: Path) -> Path:
    return _lines(folder / "delays.txt", ["# seconds\n", *(f"{n % 3 / 10}\n" for n in range(N))])


def _request(source: Path, fmt: str, **options: Any) -> ImportRequest:
    strict = options.pop("strict", False)
    return ImportRequest(source, fmt, PROVENANCE, ImportOptions(**options), None, strict)


async def _import(request: ImportRequest, out: Path, workers: int) -> ImportLog:
    shown = lambda capture: lambda state: None  # noqa: E731
    _, log = await import_with(InThreads(workers), request, out, shown)
    return log


def _files(path: Path) -> list[FileEntry]:
    assert [problem.message for problem in validate(path)] == []
    return Trace.open(path).manifest.files


def _facts(log: ImportLog) -> tuple[object, ...]:
    counts = (log.files, log.rows, log.good, log.bad, log.bad_files, log.side_rows)
    return (*counts, log.listed, log.warnings, log.facts)


def test_every_format_that_is_shared_is_tested() -> None:
    assert set(SOURCES) == {*BY_FILES, *BY_ROWS}


@pytest.mark.parametrize("fmt", SOURCES)
async def test_several_workers_make_the_same_trace(fmt: str, tmp_path: Path) -> None:
    source = SOURCES[fmt](tmp_path)
    delays = _delays(tmp_path) if fmt == "stream2llm-crawl" else None
    request = _request(source, fmt, delays=delays, passage_gap_us=5)
    log = ImportLog()
    texts = WordTexts(PROVENANCE.seed)
    import_trace(source, FORMATS[fmt], tmp_path / "one", texts, PROVENANCE, request.options, log)
    one = _files(tmp_path / "one")
    for workers in (2, 3):
        several = await _import(request, tmp_path / f"{workers}", workers)
        assert _files(tmp_path / f"{workers}") == one
        assert _facts(several) == _facts(log)
    made, again = (Trace.open(tmp_path / name).manifest.collector for name in ("one", "3"))
    assert again.options == {**made.options, "workers": 3}
    assert not list(tmp_path.glob("*.parts"))


async def test_more_workers_than_rows_leave_some_without_any(tmp_path: Path) -> None:
    row = {"timestamp": 0, "input_length": 5, "output_length": 1}
    source = _lines(tmp_path / "t.jsonl", [row, row])
    log = await _import(_request(source, "mooncake"), tmp_path / "out", 4)
    assert log.rows == Trace.open(tmp_path / "out").manifest.counts.queries == 2


async def test_a_bad_row_is_fatal_where_it_is_to_be(tmp_path: Path) -> None:
    request = _request(_mooncake(tmp_path), "mooncake", strict=True)
    with pytest.raises(ImportFailed, match=r"mooncake.jsonl, line 6: .* \(--strict\)"):
        await _import(request, tmp_path / "out", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["mooncake.jsonl"]


async def test_nothing_to_import_is_said_as_by_one(tmp_path: Path) -> None:
    source = _lines(tmp_path / "t.jsonl", ["no JSON\n"])
    with pytest.raises(ImportFailed, match=r"nothing in it can be imported as mooncake: .*line 1"):
        await _import(_request(source, "mooncake"), tmp_path / "out", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


async def test_too_few_delays_are_said_as_by_one(tmp_path: Path) -> None:
    delays = _lines(tmp_path / "delays.txt", ["1\n", "2\n"])
    request = _request(_crawl(tmp_path), "stream2llm-crawl", delays=delays)
    with pytest.raises(ImportFailed, match="has fewer delays than there are queries"):
        await _import(request, tmp_path / "out", 2)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.parts").exists()


@pytest.mark.parametrize("fmt", sorted(FORMATS.keys() - SOURCES.keys()))
async def test_what_one_process_reads_is_refused(fmt: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(click.UsageError, match="is read by one process: leave out --workers"):
        await _import(_request(tmp_path / "source", fmt), tmp_path / "out", 2)


def test_files_are_shared_out_in_order_and_by_size(tmp_path: Path) -> None:
    sizes = (10, 1, 1, 1, 1, 6, 10, 10)
    files = [_lines(tmp_path / f"{n}", ["x" * size]) for n, size in enumerate(sizes)]
    shares = ByFiles.of(files, 3)
    assert [[int(file.name) for file in share.files] for share in shares] == [
        [0, 1, 2, 3, 4],
        [5, 6],
        [7],
    ]
    assert ByFiles.of([], 2) == [ByFiles(()), ByFiles(())]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 5))
def test_every_file_is_read_once_and_in_its_order(sizes: list[int], workers: int) -> None:
    with TemporaryDirectory() as folder:
        files = [_lines(Path(folder) / str(n), ["x" * size]) for n, size in enumerate(sizes)]
        shares = ByFiles.of(files, workers)
    assert len(shares) == workers
    assert [file for share in shares for file in share.files] == files
