"""Size and speed of a trace beside the CSV files in which Stream2LLM's artifact keeps a crawl.

The same crawl of 4,322 queries is written both ways: times and lengths are drawn from the
published shape, texts are cut out of the sources of Python's own library. Loading for replay
means: every query with its arrivals in order, each with its times and its text, in memory. The CSV
side is read file by file with the steps of the artifact's own driver, which is what
``load_speedup_over_csv`` compares with, and in two faster ways: pandas by columns, and Python's
csv module. Without pandas, the csv module is all there is. Both sides have a warm file cache, and
the best of three runs counts. Prints the figures as one JSON object on the last line; run it with
the environment's Python: ``.venv/bin/python benchmarks/trace_io.py [--quick]``.
"""

import argparse
import csv
import json
import random
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.formats.base import ExportOptions
from s2l.workloads.formats.exporting import export_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.synth.profiles import profile_named
from s2l.workloads.synth.synthesis import SynthOptions, write_synthetic
from s2l.workloads.token_counter import WordCounter
from s2l.workloads.trace import Trace

QUERIES = 4_322
RUNS = 3
ARTIFACT = "as the artifact"
Events = list[tuple[int, int, str]]
"""Start and arrival in microseconds, and the text."""


def load_trace(path: Path) -> dict[str, Events]:
    """All chunks by query, out of Parquet."""
    trace = Trace.open(path)
    texts = trace.texts()
    return {
        retrieval.query.query_id: [
            (arrival.start_us, arrival.arrival_us, texts[doc_id] or "")
            for arrival in retrieval.arrivals
            if arrival.kind is ArrivalKind.APPEND
            for doc_id in arrival.doc_ids
        ]
        for retrieval in trace.retrievals()
    }


def load_csv(path: Path) -> dict[str, Events]:
    """The same out of a folder of CSV files, with the csv module."""
    csv.field_size_limit(sys.maxsize)
    found: dict[str, Events] = {}
    for file in sorted(path.glob("query_*.csv")):
        with file.open(encoding="utf-8", newline="") as opened:
            rows = [
                (float(row["startTime"]), float(row["endTime"]), row["content"])
                for row in csv.DictReader(opened)
                if row["type"] == "page_scrape" and row["content"]
            ]
        found[file.stem] = _on_one_clock(rows)
    return found


def load_pandas(path: Path) -> dict[str, Events]:
    """The same with pandas, column by column."""
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

    found: dict[str, Events] = {}
    for file in sorted(path.glob("query_*.csv")):
        table = pandas.read_csv(file)
        pages = table[(table["type"] == "page_scrape") & table["content"].notna()]
        columns = (pages["startTime"], pages["endTime"], pages["content"])
        found[file.stem] = _on_one_clock(list(zip(*columns, strict=True)))
    return found


def load_row_by_row(path: Path) -> dict[str, Events]:
    """The same with the steps of the artifact's driver, tokenising left out: pandas, the rows
    sorted by their ends, each row's text made by a function, and a walk over the rows."""
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

    def text_of(row: Any) -> str | None:
        return str(row["content"]) if row["type"] == "page_scrape" else None

    found: dict[str, Events] = {}
    for file in sorted(path.glob("query_*.csv"), key=lambda one: int(one.stem[6:])):
        table = pandas.read_csv(file)
        table["content"] = table["content"].astype(object).fillna("")
        table = table.sort_values("endTime").reset_index(drop=True)
        table["chunk"] = table.apply(text_of, axis=1)
        rows = [
            (row["startTime"], row["endTime"], row["chunk"])
            for _, row in table.iterrows()
            if isinstance(row["chunk"], str) and row["chunk"]
        ]
        found[file.stem] = _on_one_clock(rows)
    return found


def _on_one_clock(rows: list[tuple[float, float, str]]) -> Events:
    ordered = sorted(rows, key=lambda row: row[1])
    return [(round(start * 1e6), round(end * 1e6), text) for start, end, text in ordered]


def best_s(load: Callable[[Path], dict[str, Events]], path: Path) -> tuple[float, int]:
    """Seconds of the fastest run, and the characters that it loaded."""
    seconds, characters = [], 0
    for _ in range(RUNS):
        start_s = time.perf_counter()
        found = load(path)
        seconds.append(time.perf_counter() - start_s)
        characters = sum(len(text) for events in found.values() for _, _, text in events)
        del found
    return min(seconds), characters


class LibraryText:
    """Texts of so many words out of the standard library's sources, each from another place."""

    name = "words"

    def __init__(self, seed: int) -> None:
        files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
        kept = [file for file in files if "site-packages" not in file.parts]
        text = "\n".join(file.read_text(encoding="utf-8", errors="ignore") for file in kept)
        self._pieces = re.findall(r"\S+\s*", text)
        self._seed = seed

    def text(self, key: str, tokens: int) -> str:
        """The same for the same key."""
        draw = random.Random(f"{self._seed} {key}")
        at = draw.randrange(len(self._pieces) - tokens)
        return "".join(self._pieces[at : at + tokens]).strip() or "empty"


def folder_bytes(path: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def measure(folder: Path, queries: int) -> dict[str, Any]:
    """Write both forms, look at their sizes, and load them."""
    trace, table = folder / "trace", folder / "csv"
    options = SynthOptions(queries, 0)
    texts = LibraryText(0)
    write_synthetic(trace, profile_named("stream2llm-crawl"), texts, options)
    export_trace(
        Trace.open(trace), FORMATS["stream2llm-crawl"], table, ExportOptions(WordCounter())
    )
    parquet_s, parquet_chars = best_s(load_trace, trace)
    loads: dict[str, Callable[[Path], dict[str, Events]]] = {"csv": load_csv}
    try:
        import pandas  # noqa: F401

        loads |= {"pandas": load_pandas, ARTIFACT: load_row_by_row}
    except ModuleNotFoundError:
        print("pandas is not installed: only the csv module is compared", file=sys.stderr)
    peers = {name: best_s(load, table) for name, load in loads.items()}
    for name, (_, characters) in peers.items():
        if characters != parquet_chars:
            raise SystemExit(f"{name} loaded {characters:,} characters, not {parquet_chars:,}")
    sizes = folder_bytes(trace), folder_bytes(table)
    return {
        "queries": queries,
        "bytes_over_csv": round(sizes[0] / sizes[1], 4),
        "load_speedup_over_csv": round(peers.get(ARTIFACT, peers["csv"])[0] / parquet_s, 2),
        "load_speedup": {name: round(s / parquet_s, 2) for name, (s, _) in peers.items()},
        "bytes": {"trace": sizes[0], "csv": sizes[1]},
        "load_s": {"trace": round(parquet_s, 3)} | {n: round(s, 3) for n, (s, _) in peers.items()},
        "characters": parquet_chars,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="400 queries, some seconds")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"quick": quick, **measure(Path(folder), 400 if quick else QUERIES)}))


if __name__ == "__main__":
    main()
