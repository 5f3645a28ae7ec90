"""What it costs to tell of every change of a vector search, over the plain search.

IVF at nprobe 32 over random unit vectors of 384 dimensions: ``index.search`` and the progressive
search, with the same settings, take turns on the same questions in one thread of one core each.
Prints the figures as one JSON object on the last line: ``cost_ratio`` is the whole time of the one
over that of the other. Run it with the environment's Python:
``.venv/bin/python benchmarks/ann.py [--quick]``.
"""

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from s2l.collectors.ann.exact import exact_rows, recall_at
from s2l.collectors.ann.faiss_library import faiss_library, one_core
from s2l.collectors.ann.index import VectorIndex, build_index, open_index
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.progressive_search import ProgressiveSearch, Search
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import Matrix, unit_vectors

DIMENSIONS = 384
SEARCH = SearchSettings(k=10, lists_probed=32)


def random_vectors(n: int, seed: int) -> Matrix:
    """Evenly over the sphere."""
    drawn = np.random.default_rng(seed).standard_normal((n, DIMENSIONS), dtype=np.float32)
    return unit_vectors(drawn, [""] * n)


def timed_ns(work: Callable[[], Any]) -> tuple[int, Any]:
    """How long it takes, and what it returns."""
    start_ns = time.perf_counter_ns()
    found = work()
    return time.perf_counter_ns() - start_ns, found


def compare(index: VectorIndex, questions: Matrix) -> dict[str, Any]:
    """Both searches for each question in turn, first the one and then the other."""
    faiss, k = faiss_library(), SEARCH.k
    progressive = ProgressiveSearch(index.stages(SEARCH, k), k)
    parameters = faiss.SearchParametersIVF(nprobe=SEARCH.lists_probed)
    plain_ns, progressive_ns, searches = [], [], list[Search]()
    for number, vector in enumerate(questions[:, np.newaxis]):
        works = {
            "plain": lambda vector=vector: index.index.search(vector, k, params=parameters),
            "progressive": lambda vector=vector: progressive.run(Question("", vector), now_us),
        }
        order = list(works) if number % 2 else list(reversed(works))
        took = {name: timed_ns(works[name]) for name in order}
        plain_ns.append(took["plain"][0])
        progressive_ns.append(took["progressive"][0])
        search: Search = took["progressive"][1]
        check(search, took["plain"][1][1][0].tolist())
        searches.append(search)
    exact = exact_rows(questions, index.vectors, k).tolist()
    return {
        "cost_ratio": round(sum(progressive_ns) / sum(plain_ns), 3),
        "cost_ratio_p50": round(
            statistics.median(p / q for p, q in zip(progressive_ns, plain_ns, strict=True)), 3
        ),
        "plain_ms": round(statistics.median(plain_ns) / 1e6, 3),
        "progressive_ms": round(statistics.median(progressive_ns) / 1e6, 3),
        "recall_at_10": round(recall_at([s.rows for s in searches], exact, k), 4),
        "updates_p50": statistics.median(len(s.updates) for s in searches),
    }


def now_us() -> int:
    """Microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000


def check(search: Search, plain_rows: list[int]) -> None:
    """The same result, and times that rise within those of the search."""
    times = [search.start_us, *(u.at_us for u in search.updates), search.end_us]
    if sorted(times) != times or set(search.rows) != set(plain_rows):
        sys.exit(f"not the same search: {search.rows} at {times}, plain {plain_rows}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 vectors, half a minute")
    quick = parser.parse_args().quick
    # In the quick run, too, a list has about a thousand vectors.
    n, lists = (100_000, 100) if quick else (1_000_000, None)
    vectors, questions = random_vectors(n, 0), random_vectors(200, 1)
    settings = IndexSettings(kind="ivf-flat", lists=lists, training_points=64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build_ns, _ = timed_ns(lambda: build_index(vectors, settings, path, ""))
        index = open_index(vectors, settings, path, "")
    one_core()
    compare(index, questions[:20])  # the first questions find cold caches
    figures = compare(index, questions)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes = {
        "vectors": n,
        "dimensions": DIMENSIONS,
        "lists": index.index.nlist,
        "build_s": build_ns // 10**9,
    }
    print(json.dumps({"quick": quick, **figures, "peak_gib": round(peak_gib, 2), **sizes}))


if __name__ == "__main__":
    main()
