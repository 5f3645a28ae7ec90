"""How exact load generators are, how much CPU they take, and at what rate they stop being honest.

The mock runs on one core and the client on another. Every request is a streamed completion of 32
tokens, after a true time to first token of 50 ms, at a constant rate. Measured in one session: this
project's replayer with everything on (checks, run writing) over the ``openai`` adapter (``s2l``),
and over ``realtime`` with ten chunks of context a request, each also with prompts of 4,000 words;
the floor (the leanest client that we can write, in ``load_clients/floor.py``); and peers, each in
an environment of its own.

The mock's log is the ruler for all: lag is how late a request arrived there against when it was
due, laid so that one request in a hundred is early; the error of TTFT is what a client reports less
what the mock did, request by request. SGLang's client alone draws its arrivals itself, and is
judged by these. ``max_qps`` is the highest rate tried at which the 99th percentiles of both are
under 5 ms and all requests were answered. CPU is that between the first and the last arrival. A
client is measured at three rates; then that highest rate is searched for, to within a fifth.

``--poisson`` measures instead one trace of 1,000 Poisson arrivals at 100 a second, given to each.
``--memory`` measures instead whether the replayer's memory grows over 1,000,000 requests.

On a machine that is shared, ``--first`` keeps other programs' load out: the mock and clients of one
process run in a real-time class, peers of many with the highest niceness; a system that leaves that
class 95 % of a core stops what takes more for 50 ms, so that ``max_qps`` comes out lower.

Prints a table, and its figures as one JSON object on the last line; run it with the environment's
Python: ``.venv/bin/python benchmarks/loadgen.py [--quick] [--clients s2l,floor]``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import platformdirs

sys.path.insert(0, str(Path(__file__).parent / "load_clients"))
from client import Client, Figures, median_of
from judging import run_point
from memory import measure_memory
from own_clients import LONG, RATES, SHORT, own_clients
from peers import PEERS, Peer
from point import Point
from search import next_rate
from setting import environment, may_run_first, mock, say
from tables import by_rate, text_table

QUICK_RATES = {
    "s2l": (20, 100, 300, 1500),
    "floor": (20, 100, 300, 1500),
    "realtime": (150,),
    "s2l-4000": (100,),
    "realtime-4000": (25,),
    "vllm": (100,),
}
NAMES = list(dict.fromkeys([*QUICK_RATES, *PEERS]))
QUICK_S, FULL_S = 5.0, 20.0
POISSON_QPS, POISSON_S = 100, 10.0
MEMORY_REQUESTS, QUICK_MEMORY_REQUESTS = 1_000_000, 40_000


def main() -> None:
    """Measure and print."""
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if options.memory:
            found = measure_memory(work, options.requests, first=options.first)
            print(json.dumps({"memory": found, "quick": options.quick}))
            return
        clients, missing = chosen(options, work)
        for name, client in clients.items():
            measure(name, client, options, work)
    print(text_table(clients))
    print(json.dumps(summary(clients, missing, options)))


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 s a point, few rates, one peer")
    parser.add_argument("--clients", help="only these, separated by commas")
    parser.add_argument("--seconds", type=float, help="a point; 20, or 5 with --quick")
    parser.add_argument("--repeat", type=int, default=1, help="times a point; medians are given")
    parser.add_argument("--first", action="store_true", help="run before other programs")
    parser.add_argument("--poisson", action="store_true", help="only a trace of Poisson arrivals")
    parser.add_argument("--memory", action="store_true", help="only whether memory grows")
    parser.add_argument("--requests", type=int, help="of --memory; 1,000,000, with --quick 40,000")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer's folder, which peers need")
    parser.add_argument(
        "--environments",
        type=Path,
        default=Path(platformdirs.user_cache_dir("s2l")) / "bench-loadgen",
        help="where peers are installed",
    )
    options = parser.parse_args()
    if options.first and not may_run_first():
        parser.error("--first needs the right to the real-time class; run it as root, or without")
    usual_s = POISSON_S if options.poisson else QUICK_S if options.quick else FULL_S
    options.seconds = options.seconds or usual_s
    usual_requests = QUICK_MEMORY_REQUESTS if options.quick else MEMORY_REQUESTS
    options.requests = options.requests or usual_requests
    options.names = _names(options)
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"no client {unknown[0]!r}; choose from {', '.join(NAMES)}")
    return options


def _names(options: argparse.Namespace) -> list[str]:
    if options.clients:
        return list(options.clients.split(","))
    if options.poisson:
        return ["s2l", "floor", *PEERS]
    return list(QUICK_RATES) if options.quick else NAMES


def chosen(options: argparse.Namespace, work: Path) -> tuple[dict[str, Client], dict[str, str]]:
    """The clients that were asked for, and why some are missing."""
    own = own_clients(work)
    clients = {name: own[name] for name in options.names if name in own}
    missing: dict[str, str] = {}
    for name, peer in PEERS.items():
        if name not in options.names:
            continue
        try:
            bin_folder = environment(options.environments / name, peer)
        except (OSError, subprocess.SubprocessError, ModuleNotFoundError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            missing[name] = said[-1][:200] if said else repr(error)
            say(f"{name}: {missing[name]}")
        else:
            clients[name] = _peer_client(peer, bin_folder)
    return clients, missing


def _peer_client(peer: Peer, bin_folder: Path) -> Client:
    def command(point: Point) -> list[str]:
        program, *arguments = peer.command(point)
        return [str(bin_folder / program), *arguments]

    return Client(
        command,
        peer.read_ttft_ms,
        RATES,
        peer.prepare,
        one_process=False,
        due_us=peer.due_us,
        searched=True,
    )


def measure(name: str, client: Client, options: argparse.Namespace, work: Path) -> None:
    """Run a client at its rates, and search for its highest."""
    rates: tuple[float, ...] = client.rates
    if options.poisson:
        rates = (POISSON_QPS,)
    elif options.quick:
        rates = QUICK_RATES.get(name, RATES)
    for rate in rates:
        measure_at(rate, name, client, options, work)
    while client.searched and not (options.quick or options.poisson):
        tried = {figures.rate_qps: figures.honest for figures in client.figures}
        if (next_qps := next_rate(tried)) is None:
            return
        measure_at(next_qps, name, client, options, work)


def measure_at(
    rate: float, name: str, client: Client, options: argparse.Namespace, work: Path
) -> None:
    """Run a client at one rate, as often as asked for."""
    points: list[Figures] = []
    for turn in range(options.repeat):
        folder = work / f"{name}-{rate:g}-{turn}"
        folder.mkdir()
        with mock(tpot_ms=client.tpot_ms, first=options.first) as server:
            point = Point(
                server.url,
                arrivals="poisson" if options.poisson else "constant",
                rate_qps=rate,
                requests=max(1, round(rate * options.seconds)),
                prompt_tokens=LONG if name.endswith(str(LONG)) else SHORT,
                tokenizer=_tokenizer(options),
                folder=folder,
            )
            points.append(run_point(client, point, server, first=options.first))
    client.figures.append(median_of(points))
    say(f"{name} at {rate:g}: {json.dumps(asdict(client.figures[-1]))}")


def _tokenizer(options: argparse.Namespace) -> Path:
    """A tokenizer's folder: the embedded model's, unless another is named."""
    if options.tokenizer is not None:
        return Path(options.tokenizer)
    models = Path(platformdirs.user_cache_dir("s2l")) / "models"
    return next((file.parent for file in sorted(models.glob("*/tokenizer.json"))), models)


def summary(
    clients: dict[str, Client], missing: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    """The last line."""
    tables = {name: by_rate(client) for name, client in clients.items()}
    about = {
        "missing": missing,
        "cores": len(os.sched_getaffinity(0)),
        "seconds_a_point": options.seconds,
        "first": options.first,
        "quick": options.quick,
    }
    if options.poisson:
        return {"poisson": tables} | about
    own, floor, realtime, openai_long, realtime_long = (
        tables.pop(name, {}) for name in ("s2l", "floor", "realtime", "s2l-4000", "realtime-4000")
    )
    return {
        **own,
        "floor": floor,
        "realtime": realtime,
        "long_prompts": {"openai": openai_long, "realtime": realtime_long},
        "peers": tables,
        **about,
    }


if __name__ == "__main__":
    main()
