"""The demo site in a process of its own, and a place to record into."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.query import Query


@dataclass(frozen=True)
class RunningSite:
    url: str
    log: Path

    @property
    def search_url(self) -> str:
        return f"{self.url}/search?q={{query}}&n={{n}}"

    def log_lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture(scope="session")
def demo_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSite]:
    log = tmp_path_factory.mktemp("site") / "log.jsonl"
    command = [sys.executable, "-P", "-m", "s2l.collectors.demo_site", "--with-parent"]
    with subprocess.Popen(
        [*command, "--speed", "100", "--log", str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        yield RunningSite(json.loads(child.stdout.readline())["url"], log)
        child.stdin.close()
        assert child.wait(10) == 0


@dataclass
class ListSink:
    """A trace in memory; ``flushed`` is how many of ``records`` are safe."""

    records: list[Query | Document | Arrival] = field(default_factory=list)
    flushed: int = 0

    def add_query(self, query: Query) -> None:
        self.records.append(query)

    def add_document(self, document: Document) -> None:
        self.records.append(document)

    def add_arrival(self, arrival: Arrival) -> None:
        self.records.append(arrival)

    def flush(self) -> None:
        self.flushed = len(self.records)

    def arrivals(self, query_id: str) -> list[Arrival]:
        return [r for r in self.records if isinstance(r, Arrival) and r.query_id == query_id]

    def queries(self) -> list[Query]:
        return [r for r in self.records if isinstance(r, Query)]


@pytest.fixture
def sink() -> ListSink:
    return ListSink()
