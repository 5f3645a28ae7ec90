"""One query together with everything that arrived for it."""

from dataclasses import dataclass

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.query import Query


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A query and its arrivals in the order of ``seq``."""

    query: Query
    arrivals: tuple[Arrival, ...]

    @property
    def finished(self) -> bool:
        """Whether the retrieval was recorded to its end; an interrupted capture may lack it."""
        return bool(self.arrivals) and self.arrivals[-1].kind is ArrivalKind.END
