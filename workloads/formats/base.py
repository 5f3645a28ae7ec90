"""What every format's module is written against."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.query import Query
from s2l.workloads.token_counter import TokenCounter
from s2l.workloads.trace import Trace

PLAIN: Final = "text/plain"
"""The type of texts that come without one."""


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document whose text is still to be made: ``tokens`` long, the same for the same ``key``."""

    doc_id: str
    key: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query whose text is still to be made, ``tokens`` long."""

    query: Query
    key: str
    tokens: int


Record = Query | PlannedQuery | Document | PlannedDocument | Arrival
"""What importers yield: documents before the arrivals that name them, queries before theirs."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What some formats leave open.

    ``arrival``: whether a vector search's row arrives at the ``start`` or the ``end`` of its
    window. ``delays``: a file of seconds between queries. ``passage_gap_us``: time between the
    passages of a query, for formats that say which there were and not when.
    """

    arrival: str = "end"
    delays: Path | None = None
    passage_gap_us: int = 0


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """``counter`` counts what has no count yet; ``arrival`` as in ``ImportOptions``; ``tell``
    is called with the queries written so far."""

    counter: TokenCounter
    arrival: str | None = None
    tell: Callable[[int], None] = lambda done: None


Reader = Callable[[Path, ImportOptions, ImportLog], Iterator[Record]]
"""Streams the records of a file or folder. Raises ImportFailed where nothing can be read."""

Writer = Callable[[Trace, Path, ExportOptions], int]
"""Writes a trace to a file or folder, and returns its queries. Raises ExportFailed."""


@dataclass(frozen=True, slots=True)
class Format:
    """One outside format. ``loses`` is what a trace has and it cannot carry."""

    name: str
    what: str
    loses: str
    read: Reader
    write: Writer | None = None
