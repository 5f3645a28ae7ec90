"""How exact load generators are, how much CPU they take, and at what rate they stop being honest.

The mock runs on one core and the client on another. Every request is a streamed completion of 32
tokens, after a true time to first token of 50 ms, at a constant rate. Measured in one session: this
project's replayer with everything on (checks, run writing) over the ``openai`` adapter (``ours``),
and over ``realtime`` with ten chunks of context a request, each also with prompts of 4,000 words;
the floor (the leanest client that we can write, in ``load_clients/floor.py``); and peers, each in
an environment of its own.

The mock's log is the ruler for all: lag is how late a request arrived there against a grid of the
asked rate, laid so that one request in a hundred is early; the error of TTFT is what a client
reports less what the mock did, request by request. ``max_qps`` is the highest rate at which the
99th percentiles of both are under 5 ms and all requests were answered. CPU is that between the
first and the last arrival. A client is measured at three rates, and then at higher ones until it is
no longer honest.

On a machine that is shared, ``--first`` keeps other programs' load out: the mock and clients of one
process run in a real-time class, peers of many with the highest niceness; a system that leaves that
class 95 % of a core stops what takes more for 50 ms, so that ``max_qps`` comes out lower.
``--memory`` measures instead whether memory grows over 200,000 requests.

Prints a table, and its figures as one JSON object on the last line; run it with the environment's
Python: ``.venv/bin/python benchmarks/loadgen.py [--quick] [--clients ours,floor]``.
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
from client import Client, median_of
from judging import run_point
from memory import measure_memory
from own_clients import LONG, RATES, SHORT, own_clients
from peers import PEERS, Peer, Point
from setting import environment, may_run_first, mock, say
from tables import by_rate, text_table

PEER_RATES = (*RATES, 450, 600, 800, 1000)
QUICK_RATES = {
    "ours": (20, 100, 300, 1500),
    "floor": (20, 100, 300, 1500),
    "realtime": (150,),
    "ours-4000": (100,),
    "realtime-4000": (25,),
    "vllm": (100,),
}
QUICK_S, FULL_S = 5.0, 8.0


def main() -> None:
    """Measure and print."""
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if options.memory:
            found = measure_memory(work, quick=options.quick, first=options.first)
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
    parser.add_argument("--seconds", type=float, help="a point; 8, or 5 with --quick")
    parser.add_argument("--repeat", type=int, default=1, help="times a point; medians are given")
    parser.add_argument("--first", action="store_true", help="run before other programs")
    parser.add_argument("--memory", action="store_true", help="only whether memory grows")
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
    options.seconds = options.seconds or (QUICK_S if options.quick else FULL_S)
    names = list(dict.fromkeys([*QUICK_RATES, *PEERS]))
    options.names = options.clients.split(",") if options.clients else names
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"no client {unknown[0]!r}; choose from {', '.join(names)}")
    return options


def chosen(options: argparse.Namespace, work: Path) -> tuple[dict[str, Client], dict[str, str]]:
    """The clients that were asked for, and why some are missing."""
    own = own_clients(work)
    clients = {name: own[name] for name in options.names if name in own}
    missing: dict[str, str] = {}
    for name, peer in PEERS.items():
        quick_too = not options.quick or bool(options.clients) or name in QUICK_RATES
        if name not in options.names or not quick_too:
            continue
        try:
            install = not peer.large or bool(options.clients)
            bin_folder = environment(options.environments / name, peer, install=install)
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

    return Client(command, peer.read_ttft_ms, PEER_RATES, peer.prepare, one_process=False)


def measure(name: str, client: Client, options: argparse.Namespace, work: Path) -> None:
    """Run a client at its rates; beyond the first three, while it is honest."""
    rates = QUICK_RATES.get(name, RATES) if options.quick else client.rates
    words = LONG if name.endswith(str(LONG)) else SHORT
    for number, rate in enumerate(rates):
        if not options.quick and number >= len(RATES) and not client.figures[-1].honest:
            return
        points = []
        for turn in range(options.repeat):
            folder = work / f"{name}-{rate}-{turn}"
            folder.mkdir()
            requests = max(1, round(rate * options.seconds))
            with mock(tpot_ms=client.tpot_ms, first=options.first) as server:
                point = Point(server.url, rate, requests, words, _tokenizer(options), folder)
                points.append(run_point(client, point, server, first=options.first))
        client.figures.append(median_of(points))
        say(f"{name} at {rate}: {json.dumps(asdict(client.figures[-1]))}")


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
    own, floor, realtime, openai_long, realtime_long = (
        tables.pop(name, {}) for name in ("ours", "floor", "realtime", "ours-4000", "realtime-4000")
    )
    return {
        **own,
        "floor": floor,
        "realtime": realtime,
        "long_prompts": {"openai": openai_long, "realtime": realtime_long},
        "peers": tables,
        "missing": missing,
        "cores": len(os.sched_getaffinity(0)),
        "seconds_a_point": options.seconds,
        "first": options.first,
        "quick": options.quick,
    }


if __name__ == "__main__":
    main()
