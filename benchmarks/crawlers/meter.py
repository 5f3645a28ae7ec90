"""What every crawler of the benchmark shares: the extraction, its worker processes, the counts.

Runs in environments that have trafilatura and nothing of ours.
"""

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = (
    b"<html><body><main><p>A paragraph that is long enough to be a page.</p></main></body></html>"
)


@dataclass(frozen=True)
class Task:
    """The command line of a crawler: pages to fetch, fetches at once, extraction processes."""

    urls: list[str]
    concurrency: int
    workers: int

    @classmethod
    def from_arguments(cls) -> "Task":
        file, concurrency, workers = sys.argv[1:4]
        return cls(Path(file).read_text().split(), int(concurrency), int(workers))


def extract(body: bytes | str) -> tuple[str, str]:
    """Title and main text, found exactly as the project's own extraction does."""
    import trafilatura
    from trafilatura.metadata import extract_title

    tree = trafilatura.load_html(body)
    if tree is None:
        return "", ""
    title = extract_title(tree) or ""
    text = trafilatura.extract(tree, favor_recall=True, include_comments=False)
    return title, (text or trafilatura.html2txt(body)).strip()


def warm_pool(workers: int) -> ProcessPoolExecutor:
    """Worker processes that have extracted once."""
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    for done in [pool.submit(extract, _SAMPLE) for _ in range(workers * 4)]:
        done.result()
    return pool


@dataclass
class Meter:
    """Counts pages from ``start`` on, with the CPU time of this process and its workers."""

    total: int
    pages: int = 0
    chars: int = 0
    failed: int = 0
    _start_s: float = 0.0
    _start_cpu_s: float = 0.0
    _end_s: float = 0.0
    _rss_mib: list[float] = field(default_factory=list)

    def start(self) -> None:
        self._start_cpu_s = _cpu_s()
        self._start_s = time.monotonic()

    def page(self, text: str) -> None:
        """One more page is text."""
        self.pages += 1
        self.chars += len(text)
        self._end_s = time.monotonic()
        if self.pages % max(1, self.total // 10) == 0:
            self._rss_mib.append(_rss_mib())

    def say(self, **more: object) -> None:
        """Print the figures; call it while the workers still run."""
        seconds = self._end_s - self._start_s
        cpu_s = _cpu_s() - self._start_cpu_s
        figures = {
            "pages": self.pages,
            "failed": self.total - self.pages,
            "chars": self.chars,
            "seconds": seconds,
            "pages_per_s": self.pages / seconds if seconds else 0.0,
            "cpu_ms_per_page": 1000 * cpu_s / max(1, self.pages),
            "rss_mib": self._rss_mib,
            **more,
        }
        print(json.dumps(figures), flush=True)


def _processes() -> list[int]:
    return [os.getpid(), *(child.pid or 0 for child in multiprocessing.active_children())]


def _cpu_s() -> float:
    """User and system time of this process and its workers."""
    total = 0.0
    for pid in _processes():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


def _rss_mib() -> float:
    """Resident memory of this process and its workers."""
    kib = 0
    for pid in _processes():
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return round(kib / 1024, 1)
