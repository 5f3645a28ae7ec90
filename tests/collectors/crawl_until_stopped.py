"""A crawl to be stopped from outside: python crawl_until_stopped.py SEARCH_URL FOLDER."""

import asyncio
import json
import multiprocessing
import sys
from pathlib import Path

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter

sys.path.insert(0, str(Path(__file__).parent))
from collecting_crawl import collect_crawl


class TellingWriter(TraceWriter):
    """Says on standard output how many queries' ends are on disk."""

    ended = 0

    def add_arrival(self, arrival: Arrival) -> None:
        super().add_arrival(arrival)
        self.ended += arrival.kind is ArrivalKind.END

    def flush(self) -> None:
        ended = self.ended
        super().flush()
        workers = [child.pid for child in multiprocessing.active_children()]
        print(json.dumps({"ended": ended, "workers": workers}), flush=True)


if __name__ == "__main__":
    queries = [Query(str(i), f"textwrap.wrap {i}") for i in range(1000)]
    writer = TellingWriter.create(
        Path(sys.argv[2]), name="t", collector=Collector("crawl", "0"), licence="Apache-2.0"
    )
    settings = CrawlSettings.at_home(extract_workers=1)
    asyncio.run(collect_crawl(queries, sys.argv[1], writer, concurrency=4, settings=settings))
