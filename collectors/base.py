"""What a collector is."""

from typing import Protocol

from s2l.collectors.record import Recorder
from s2l.workloads.query import Query


class Collector(Protocol):
    """Retrieves context for a query and records each piece at the moment when it is there.

    A new way to retrieve is one class with this method. It never stamps times and never writes
    files; failures of a search or a page are recorded arrivals, and any other exception ends the
    capture.
    """

    async def retrieve(self, query: Query, record: Recorder) -> None:
        """Retrieve for one query; the retrieval has ended when this returns."""
