"""Pages per second and CPU per page of a crawl, beside other crawlers, and the clock's error.

Serves Debian's python3-doc and sqlite3-doc on loopback and fetches the same pages with this
project, Scrapy, Crawlee and Crawl4AI's HTTP strategy, one after the other: the same number of
requests at once, the same extraction (trafilatura) in the same number of worker processes. This
project also records its trace. Each other crawler lives in an environment of its own, made here
and kept in ``--environments``; one that cannot be installed is said to be missing.

The clock's error is that of the times in the trace against the server's own log of when it had
sent each last byte, with 50 pages under way that take 1 to 3 s each, as on the web.

Prints its figures as one JSON object on the last line. Run it with the environment's Python:
``.venv/bin/python benchmarks/crawl.py [--quick]``.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs

HERE = Path(__file__).parent / "crawlers"
FOLDERS = {
    "python": Path("/usr/share/doc/python3/html"),
    "sqlite": Path("/usr/share/doc/sqlite3"),
}
PEERS = {"scrapy": "scrapy==2.19.0", "crawlee": "crawlee==1.11.0", "crawl4ai": "crawl4ai==0.9.5"}
EXTRACTION = ("trafilatura", "lxml_html_clean")
CONCURRENCY = 50
LONG_RUN_PAGES = 10_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 pages, once: two minutes")
    parser.add_argument(
        "--environments",
        type=Path,
        default=Path(platformdirs.user_cache_dir("s2l")) / "bench-crawlers",
        help="where the other crawlers are installed",
    )
    parser.add_argument("--rounds", type=int, default=None, help="3, or 1 with --quick")
    options = parser.parse_args()
    folders = doc_folders()
    pythons, missing = environments(options.environments)
    with served(folders) as site:
        pages = fetched_json(f"{site}/_pages")
        chosen = random.Random(0).sample(pages, 200 if options.quick else len(pages))
        rounds = options.rounds or (1 if options.quick else 3)
        runs = rounds_of(pythons, [site + page for page in chosen], rounds, missing)
        clock = clock_errors_ms(site, pages, 150 if options.quick else 1000)
        long_run = None if options.quick else memory_run(site, pages)
    print(json.dumps(figures(runs, missing, clock, long_run, options.quick), indent=None))


def figures(
    runs: dict[str, list[dict[str, Any]]],
    missing: dict[str, str],
    clock: list[float],
    long_run: dict[str, Any] | None,
    quick: bool,
) -> dict[str, Any]:
    """The keys that the design names, and what is needed to judge them."""

    def middle(name: str, key: str) -> float:
        return round(statistics.median(run[key] for run in runs[name]), 2)

    peers = {name: middle(name, "pages_per_s") for name in runs if name != "s2l"}
    ours = middle("s2l", "pages_per_s")
    return {
        "quick": quick,
        "pages_per_s": ours,
        "peer_pages_per_s": peers,
        "ratio_to_fastest_peer": round(ours / max(peers.values()), 3) if peers else None,
        "cpu_ms_per_page": middle("s2l", "cpu_ms_per_page"),
        "peer_cpu_ms_per_page": {name: middle(name, "cpu_ms_per_page") for name in peers},
        "clock_error_p99_ms": round(percentile(clock, 99), 3),
        "clock_error_p50_ms": round(percentile(clock, 50), 3),
        "clock_pages": len(clock),
        "pages": runs["s2l"][0]["pages"],
        "failed": {name: sum(run["failed"] for run in some) for name, some in runs.items()},
        "chars": {name: some[0]["chars"] for name, some in runs.items()},
        "rounds": len(runs["s2l"]),
        "concurrency": CONCURRENCY,
        "extraction_processes": workers(),
        "rss_mib": {name: max(some[-1]["rss_mib"], default=None) for name, some in runs.items()},
        "long_run": long_run,
        "missing_peers": missing,
        "versions": {name: some[0].get("version") for name, some in runs.items() if name != "s2l"},
    }


def workers() -> int:
    """Extraction processes: as many as the project starts by itself."""
    return max(1, min(4, (os.cpu_count() or 2) - 1))


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]


def rounds_of(
    pythons: dict[str, Path], urls: list[str], rounds: int, missing: dict[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """Every crawler in turn, ``rounds`` times, each round beginning with another.

    One of the others that fails goes to ``missing``, with its last words.
    """
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
    names = list(pythons)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if name in missing:
                continue
            try:
                run = crawl(name, pythons[name], urls)
            except subprocess.CalledProcessError as error:
                if name == "s2l":
                    raise
                missing[name] = f"failed: {last_words(error)}"
                say(f"{name} {missing[name]}")
                runs.pop(name)
                continue
            say(f"{name}: {run['pages_per_s']:.1f} pages/s, {run['cpu_ms_per_page']:.1f} ms CPU")
            runs[name].append(run)
    return runs


def crawl(name: str, python: Path, urls: list[str], **environment: str) -> dict[str, Any]:
    """Run one crawler in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(urls))
        file.flush()
        done = subprocess.run(
            [python, HERE / f"with_{name}.py", file.name, str(CONCURRENCY), str(workers())],
            env={**os.environ, "CRAWL4_AI_BASE_DIRECTORY": tempfile.gettempdir(), **environment},
            capture_output=True,
            check=True,
            text=True,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def clock_errors_ms(site: str, pages: list[str], n: int) -> list[float]:
    """How far the trace's last bytes are from the server's, for ``n`` pages."""
    chance = random.Random(1)
    small = [page for page in pages if "genindex" not in page]
    urls = [
        f"{site}{chance.choice(small)}?delay_s={chance.uniform(1, 3):.3f}&n={number}"
        for number in range(n)
    ]
    bodies_ns = crawl("s2l", Path(sys.executable), urls, S2L_BENCH_BODIES="1")["bodies_ns"]
    sent_ns = fetched_json(f"{site}/_sent")
    return [abs(bodies_ns[url] - sent_ns[url.removeprefix(site)]) / 1e6 for url in bodies_ns]


def memory_run(site: str, pages: list[str]) -> dict[str, Any]:
    """10,000 pages: resident memory after every tenth of them."""
    urls = [f"{site}{pages[n % len(pages)]}?n={n}" for n in range(LONG_RUN_PAGES)]
    run = crawl("s2l", Path(sys.executable), urls)
    return {"pages": run["pages"], "rss_mib": run["rss_mib"]}


def doc_folders() -> list[str]:
    """The documentation's folders, as the server takes them."""
    found = [f"{name}={folder}" for name, folder in FOLDERS.items() if folder.is_dir()]
    if len(found) < len(FOLDERS):
        sys.exit("the documentation is missing: apt-get install python3-doc sqlite3-doc")
    return found


def environments(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Pythons by crawler, and why the others are missing."""
    pythons, missing = {"s2l": Path(sys.executable)}, {}
    for name, requirement in PEERS.items():
        try:
            pythons[name] = environment(folder / requirement.replace("==", "-"), requirement)
        except subprocess.CalledProcessError as error:
            missing[name] = f"could not be installed: {last_words(error)}"
            say(f"{name} {missing[name]}")
    return pythons, missing


def last_words(error: subprocess.CalledProcessError) -> str:
    """The last line of what a failed program said."""
    return " ".join((error.stderr or str(error)).strip().splitlines()[-1:])[:200]


def environment(folder: Path, requirement: str) -> Path:
    """A virtual environment with one crawler and our versions of what extracts."""
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        say(f"installing {requirement}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pinned = [f"{name}=={version(name)}" for name in EXTRACTION]
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", requirement, *pinned],
            check=True,
            capture_output=True,
            text=True,
        )
        ready.touch()
    return python


@contextmanager
def served(folders: list[str]) -> Iterator[str]:
    """The documentation on loopback, in a process of its own; its address."""
    with subprocess.Popen(
        [sys.executable, HERE / "doc_server.py", *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def fetched_json(url: str) -> Any:
    """A JSON answer of the server."""
    with urllib.request.urlopen(url) as response:
        return json.load(response)


def say(text: str) -> None:
    """One line about what is being done."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
