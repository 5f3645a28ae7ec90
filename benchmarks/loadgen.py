"""How exact load generators are, how much CPU they take, and at what rate they stop being honest.

The mock runs on one core and the client on another. Every request is a streamed completion of 32
tokens, after a true time to first token of 50 ms, at a constant rate. Measured in one session: this
project's replayer with everything on (checks, run writing) over the ``openai`` adapter, and over
``realtime`` with ten chunks of context a request; the floor (the leanest client that we can write,
in ``load_clients/floor.py``); and peers, each in an environment of its own.

The mock's log is the ruler for all: lag is how late a request arrived there against a grid of the
asked rate, laid so that one request in a hundred is early; the error of TTFT is what a client
reports less what the mock did, request by request. ``max_qps`` is the highest rate at which the
99th percentiles of both are under 5 ms and all requests were answered. CPU is that between the
first and the last arrival. Prints its figures as one JSON object on the last line; run it with the
environment's Python: ``.venv/bin/python benchmarks/loadgen.py [--quick] [--clients ours,floor]``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

sys.path.insert(0, str(Path(__file__).parent / "load_clients"))
from peers import PEERS, Point
from process_meter import ProcessMeter
from setting import TTFT_MS, environment, mock, pin, say
from traces import write_trace

from s2l.replayer.run import Run

HERE = Path(__file__).parent / "load_clients"
RATES = (20, 100, 300)
SEARCH = (450, 600, 800, 1000, 1250, 1500, 1750, 2000, 2250, 2500, 3000)
QUICK_RATES = {"ours": (100, 300, 1500), "floor": (100, 300, 1500), "realtime": (50, 150)}
LIMIT_MS = 5.0
PROMPT_TOKENS = 100
REALTIME_CHUNKS, REALTIME_GAP_US = 10, 30_000
QUERIES = 1000
CLIENT_EXTRA_S = 120


@dataclass
class Figures:
    """One client at one rate."""

    rate_qps: float
    answered: int = 0
    asked: int = 0
    lag_p99_ms: float = float("nan")
    ttft_error_p99_ms: float = float("nan")
    chunk_lag_p99_ms: float | None = None
    cpu_s_per_1k: float = float("nan")
    start_s: float = float("nan")
    peak_mb: float = float("nan")
    achieved_qps: float = float("nan")

    @property
    def honest(self) -> bool:
        """Whether what it reports at this rate can be believed."""
        late = (self.lag_p99_ms, self.ttft_error_p99_ms)
        return self.answered >= self.asked > 0 and all(ms < LIMIT_MS for ms in late)


@dataclass
class Client:
    """How a client is run and what it says of its requests: TTFT in ms by request, and, where it
    sends chunks, their lag. ``sent_after`` requests come after those that count."""

    command: Callable[[Point], list[str]]
    read_ttft_ms: Callable[[Point], list[float]]
    prepare: Callable[[Point], None] = lambda _: None
    read_chunk_lag_ms: Callable[[Point], list[float]] | None = None
    rates: tuple[int, ...] = RATES + SEARCH
    sent_after: int = 0
    figures: list[Figures] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 s a point, few rates, no peers")
    parser.add_argument("--clients", help="only these, separated by commas")
    parser.add_argument("--prompt-tokens", type=int, default=PROMPT_TOKENS)
    parser.add_argument("--seconds", type=float, help="a point; 20, or 5 with --quick")
    parser.add_argument("--first", action="store_true", help="run ahead of other programs: nice -20")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer's folder, which peers need")
    parser.add_argument(
        "--environments",
        type=Path,
        default=Path(platformdirs.user_cache_dir("s2l")) / "bench-loadgen",
        help="where peers are installed",
    )
    options = parser.parse_args()
    seconds = options.seconds or (5.0 if options.quick else 20.0)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        clients = own_clients(work, options.prompt_tokens)
        missing: dict[str, str] = {}
        wanted = options.clients.split(",") if options.clients else list(clients)
        if not (options.quick or options.clients):
            wanted += list(PEERS)
        if unknown := [name for name in wanted if name not in clients and name not in PEERS]:
            parser.error(f"no client {unknown[0]!r}; choose from {', '.join([*clients, *PEERS])}")
        others, missing = peers(options.environments, [n for n in wanted if n in PEERS])
        clients |= others
        clients = {name: clients[name] for name in wanted if name in clients}
        for name, client in clients.items():
            rates = QUICK_RATES.get(name, RATES) if options.quick else client.rates
            measure(name, client, rates, seconds, options, work)
    print(json.dumps(summary(clients, missing, quick=options.quick)))


def own_clients(work: Path, prompt_tokens: int) -> dict[str, Client]:
    """This project's replayer, and the floor."""
    one = write_trace(work / "one", queries=QUERIES, chunks=1, words=prompt_tokens, gap_us=0)
    ten = write_trace(
        work / "ten",
        queries=300,
        chunks=REALTIME_CHUNKS,
        words=prompt_tokens // REALTIME_CHUNKS,
        gap_us=REALTIME_GAP_US,
    )
    prompt = work / "prompt"
    prompt.write_text(" ".join(f"word{i}" for i in range(prompt_tokens)))
    return {
        "ours": Client(_ours("openai", one), _read_run),
        "realtime": Client(
            _ours("realtime", ten),
            _read_run,
            read_chunk_lag_ms=_read_chunks,
            rates=(20, 75, 150),
            sent_after=1,
        ),
        "floor": Client(_floor(prompt), _read_list),
    }


def _ours(adapter: str, trace: Path) -> Callable[[Point], list[str]]:
    def command(point: Point) -> list[str]:
        what = [point.url, adapter, f"{point.rate_qps:g}", point.requests]
        return [sys.executable, *map(str, [HERE / "ours.py", *what, trace, point.folder / "run"])]

    return command


def _floor(prompt: Path) -> Callable[[Point], list[str]]:
    def command(point: Point) -> list[str]:
        what = [point.url, f"{point.rate_qps:g}", point.requests, prompt, point.folder / "out.json"]
        return [sys.executable, *map(str, [HERE / "floor.py", *what])]

    return command


def _read_run(point: Point) -> list[float]:
    rows = Run.open(point.folder / "run").requests()
    table = rows.select(["context_us", "first_token_us"]).sort_by("context_us").to_pydict()
    pairs = zip(table["first_token_us"], table["context_us"], strict=True)
    return [(first - sent) / 1e3 for first, sent in pairs if first is not None]


def _read_chunks(point: Point) -> list[float]:
    rows = Run.open(point.folder / "run").chunks().to_pydict()
    pairs = zip(rows["sent_us"], rows["send_intended_us"], strict=True)
    return [(sent - due) / 1e3 for sent, due in pairs if sent is not None]


def _read_list(point: Point) -> list[float]:
    found: list[float] = json.loads((point.folder / "out.json").read_text())
    return found


def measure(
    name: str,
    client: Client,
    rates: tuple[int, ...],
    seconds: float,
    options: argparse.Namespace,
    work: Path,
) -> None:
    """Run a client at each rate; beyond the first three, until it is no longer honest."""
    for number, rate in enumerate(rates):
        folder = work / f"{name}-{rate}"
        folder.mkdir()
        with mock(first=options.first) as url:
            requests = max(1, round(rate * seconds))
            point = Point(url, rate, requests, options.prompt_tokens, _tokenizer(options), folder)
            figures = run_point(client, point, first=options.first)
        client.figures.append(figures)
        say(f"{name} at {rate}: {json.dumps(asdict(figures))}")
        if number >= len(RATES) and not figures.honest:
            return


def run_point(client: Client, point: Point, *, first: bool) -> Figures:
    """One client at one rate, judged by the mock's log."""
    figures = Figures(point.rate_qps, asked=point.requests)
    client.prepare(point)
    begun_s = time.monotonic()
    limit_s = point.requests / point.rate_qps * 3 + CLIENT_EXTRA_S
    with (point.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            client.command(point), stdout=log, stderr=log, preexec_fn=lambda: pin(-1, first=first)
        )
        meter = ProcessMeter(process.pid)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    if code:
        say((point.folder / "log").read_text(errors="replace")[-500:])
        return figures
    judge(figures, point, client, meter, begun_s)
    return figures


def judge(
    figures: Figures, point: Point, client: Client, meter: ProcessMeter, begun_s: float
) -> None:
    """Fill in what the mock's log and the client's own report say."""
    with urllib.request.urlopen(f"{point.url}/mock/log") as answer:
        log = [json.loads(line) for line in answer.read().splitlines()]
    log = sorted((e for e in log if e["outcome"] == "ok"), key=lambda e: e["arrived_ns"])
    # Some clients send a request before, to see whether all is well, and some after.
    log = log[: len(log) - client.sent_after][-point.requests :]
    if not log:
        return
    arrived_ms = np.array([entry["arrived_ns"] for entry in log]) / 1e6
    offsets_ms = arrived_ms - np.arange(len(log)) * 1e3 / point.rate_qps
    figures.answered = len(log)
    on_time_ms = np.percentile(offsets_ms, 1)
    figures.lag_p99_ms = round(float(np.percentile(offsets_ms - on_time_ms, 99)), 3)
    first_s, last_s = arrived_ms[0] / 1e3, arrived_ms[-1] / 1e3
    figures.achieved_qps = round((len(log) - 1) / max(1e-9, last_s - first_s), 2)
    cpu_s = meter.cpu_between_s(first_s, last_s)
    figures.cpu_s_per_1k = round(1e3 * cpu_s / len(log), 3)
    figures.start_s, figures.peak_mb = round(first_s - begun_s, 2), round(meter.peak_mb, 1)
    ttft_ms = np.array(client.read_ttft_ms(point))[-len(log) :]
    true_ms = np.array([(e["first_ns"] - e["arrived_ns"]) / 1e6 for e in log if e.get("first_ns")])
    if len(ttft_ms) != len(true_ms):  # the log of Realtime sessions does not say
        true_ms = np.full(len(ttft_ms), float(TTFT_MS))
    figures.ttft_error_p99_ms = round(float(np.percentile(np.abs(ttft_ms - true_ms), 99)), 3)
    if client.read_chunk_lag_ms is not None:
        lags_ms = client.read_chunk_lag_ms(point)
        figures.chunk_lag_p99_ms = round(float(np.percentile(lags_ms, 99)), 3)


def peers(folder: Path, wanted: list[str]) -> tuple[dict[str, Client], dict[str, str]]:
    """Peers that are installed, or can be, and why others are missing."""
    found, missing = {}, {}
    for name in wanted:
        peer = PEERS[name]
        try:
            bin_folder = environment(folder / name, peer)
        except (OSError, subprocess.SubprocessError, ModuleNotFoundError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            missing[name] = f"could not be installed: {said[-1][:200] if said else error}"
            say(f"{name} {missing[name]}")
            continue

        def command(point: Point, peer: Any = peer, bin_folder: Path = bin_folder) -> list[str]:
            program, *arguments = peer.command(point)
            return [str(bin_folder / program), *arguments]

        found[name] = Client(command, peer.read_ttft_ms, peer.prepare)
    return found, missing


def _tokenizer(options: argparse.Namespace) -> Path:
    """A tokenizer's folder: the embedded model's, unless another is named."""
    if options.tokenizer is not None:
        return Path(options.tokenizer)
    models = Path(platformdirs.user_cache_dir("s2l")) / "models"
    return next((file.parent for file in sorted(models.glob("*/tokenizer.json"))), models)


def summary(clients: dict[str, Client], missing: dict[str, str], *, quick: bool) -> dict[str, Any]:
    """The last line."""
    tables = {name: table(client) for name, client in clients.items()}
    own = tables.pop("ours", {})
    floor, realtime = tables.pop("floor", {}), tables.pop("realtime", {})
    return {
        **own,
        "realtime": realtime,
        "floor": floor,
        "peers": tables,
        "missing": missing,
        "cores": len(os.sched_getaffinity(0)),
        "quick": quick,
    }


def table(client: Client) -> dict[str, Any]:
    """The figures of one client, by rate."""

    def by_rate(name: str) -> dict[str, Any]:
        return {f"{f.rate_qps:g}": getattr(f, name) for f in client.figures}

    honest = [f.rate_qps for f in client.figures if f.honest]
    found = {
        "max_qps": max(honest, default=0),
        "start_s": max((f.start_s for f in client.figures), default=None),
        "peak_mb": max((f.peak_mb for f in client.figures), default=None),
    }
    names = ["lag_p99_ms", "ttft_error_p99_ms", "cpu_s_per_1k", "achieved_qps"]
    if client.read_chunk_lag_ms is not None:
        names.append("chunk_lag_p99_ms")
    return found | {name: by_rate(name) for name in names}


if __name__ == "__main__":
    main()
