"""This project's replayer, over both protocols and with short and long prompts, and the floor."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from client import Client
from point import Point
from traces import write_trace

from s2l.replayer.run import Run

HERE = Path(__file__).parent
RATES = (20, 100, 300)
REALTIME_RATES = (20, 75, 150)
REALTIME_LONG_RATES = (10, 25, 50)
"""The mock itself is busy with 4,000 words over this protocol from 75 a second on."""
SHORT, LONG = 100, 4000
CHUNKS, GAP_US = 10, 31_700
REALTIME_TPOT_MS = 10.3
"""No multiple of the time between requests: pieces and tokens of all requests would otherwise be
due at the same moments, and the mock, one after the other, late with most of them."""


def own_clients(work: Path) -> dict[str, Client]:
    """By name; their traces are written to ``work``."""
    prompt = work / "prompt"
    prompt.write_text(" ".join(f"word{i}" for i in range(SHORT)))
    return {
        "s2l": _openai(work / "short", SHORT, searched=True),
        "floor": Client(_floor(prompt), _read_list, RATES, prepare=_write_due, searched=True),
        "realtime": _realtime(work / "chunks", SHORT, REALTIME_RATES),
        "s2l-4000": _openai(work / "long", LONG, searched=False),
        "realtime-4000": _realtime(work / "long-chunks", LONG, REALTIME_LONG_RATES),
    }


def ours(adapter: str, trace: Path, max_tokens: int = 32) -> Callable[[Point], list[str]]:
    """How the replayer is run."""

    def command(point: Point) -> list[str]:
        what = [point.url, adapter, point.arrivals, f"{point.rate_qps:g}", point.requests]
        files = [trace, point.folder / "run"]
        return [sys.executable, *map(str, [HERE / "ours.py", *what, max_tokens, *files])]

    return command


def _openai(trace: Path, words: int, *, searched: bool) -> Client:
    write_trace(trace, queries=1000, chunks=1, words=words, gap_us=0)
    return Client(ours("openai", trace), _read_run, RATES, searched=searched)


def _realtime(trace: Path, words: int, rates: tuple[int, ...]) -> Client:
    write_trace(trace, queries=300, chunks=CHUNKS, words=words // CHUNKS, gap_us=GAP_US)
    return Client(
        ours("realtime", trace),
        _read_run,
        rates,
        read_chunk_lag_ms=_read_pieces,
        sent_after=1,
        tpot_ms=REALTIME_TPOT_MS,
    )


def _floor(prompt: Path) -> Callable[[Point], list[str]]:
    def command(point: Point) -> list[str]:
        what = [point.url, point.folder / "due.json", prompt, point.folder / "out.json"]
        return [sys.executable, *map(str, [HERE / "floor.py", *what])]

    return command


def _write_due(point: Point) -> None:
    (point.folder / "due.json").write_text(json.dumps(point.due_us().tolist()))


def _read_run(point: Point) -> list[float]:
    rows = Run.open(point.folder / "run").requests()
    table = rows.select(["context_us", "first_token_us"]).sort_by("context_us").to_pydict()
    pairs = zip(table["first_token_us"], table["context_us"], strict=True)
    return [(first - sent) / 1e3 for first, sent in pairs if first is not None]


def _read_pieces(point: Point) -> list[float]:
    run = Run.open(point.folder / "run")
    chunks, requests = run.chunks().to_pydict(), run.requests().to_pydict()
    handed = [*chunks["handed_us"], *requests["ask_us"]]
    due = [*chunks["send_intended_us"], *requests["context_intended_us"]]
    return [(us - due_us) / 1e3 for us, due_us in zip(handed, due, strict=True) if us is not None]


def _read_list(point: Point) -> list[float]:
    found: list[float] = json.loads((point.folder / "out.json").read_text())
    return found
