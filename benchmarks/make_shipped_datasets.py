"""Makes the two small datasets of ``datasets/``: a crawl of the demo site, and a vector search.

The shipped questions are asked of the demo site (Python's own documentation server behind web-like
latencies), and then of an index of the documents that the crawl brought. Both are scrubbed,
packaged with their cards, and looked at as a stranger's would be. Run it in the checkout with the
environment's Python: ``.venv/bin/python benchmarks/make_shipped_datasets.py [crawl] [ann]``. An
existing dataset is replaced when the new one is whole.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from s2l.workloads.scrubbing.scrubber import Scrubber, scrub
from s2l.workloads.sharing.inspector import Inspector
from s2l.workloads.sharing.packaging import package
from s2l.workloads.trace import Trace

DATASETS = Path(__file__).parents[1] / "datasets"
QUESTIONS = DATASETS / "pydocs" / "queries.jsonl"
MOST_BYTES = 500_000
NAMES = {"crawl": "demo-crawl", "ann": "demo-ann"}


def collect(kind: str, out: Path, *options: str) -> None:
    """Capture with the program itself."""
    command = [sys.executable, "-m", "s2l", "collect", kind, "--queries", str(QUESTIONS)]
    subprocess.run([*command, *options, "--out", str(out)], check=True)


def ship(captured: Path, folder: Path) -> None:
    """Scrub, package, look at it, and put it in place."""
    name = captured.name
    scrub(Trace.open(captured), folder / "scrubbed" / name, Scrubber())
    ready = package(Trace.open(folder / "scrubbed" / name), folder / "ready" / name)
    with Inspector() as inspector:
        inspector.check(ready.path)
    size = sum(entry.bytes for entry in ready.manifest.files)
    if size > MOST_BYTES:
        raise SystemExit(f"{name}: {size:,} bytes; at most {MOST_BYTES:,} are shipped")
    target = DATASETS / name
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(ready.path, target)
    print(f"{target}: {size:,} bytes")


def main() -> None:
    """Make the named ones, or both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="crawl, ann; both when none is named")
    kinds = parser.parse_args().kinds or list(NAMES)
    if unknown := set(kinds) - set(NAMES):
        parser.error(f"{min(unknown)} is not one of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "crawl" in kinds:
            collect("crawl", folder / NAMES["crawl"], "--concurrency", "2")
            ship(folder / NAMES["crawl"], folder)
        if "ann" in kinds:
            options = (str(DATASETS / NAMES["crawl"]), "--gaps", "stream2llm-anns")
            collect("ann", folder / NAMES["ann"], *options)
            ship(folder / NAMES["ann"], folder)


if __name__ == "__main__":
    main()
