"""What a report needs of a run, read so that a million requests fit into little memory.

Lists of token times and texts are seen batch by batch and never held together, but for the texts
themselves, which stay Arrow strings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import CHUNK_SCHEMA, REQUEST_SCHEMA, Run, RunInfo
from s2l.reports.columns import column_batches, read_columns
from s2l.reports.metrics import Booleans, Floats
from s2l.reports.moments import early_moment, final_mask
from s2l.reports.request_scan import RequestScan, TokenEvents, scan_requests
from s2l.reports.scores import read_scores, values_of

_HEAVY: Final = ("token_us", "token_n", "output_text", "error", "attempt_us", "attempt_errors")
_LIGHT: Final = [name for name in REQUEST_SCHEMA.names if name not in _HEAVY]
_OF_CHUNKS: Final = [name for name in CHUNK_SCHEMA.names if name not in ("request_id", "doc_ids")]


@dataclass(frozen=True, slots=True)
class RunData:
    """A run's tables without their heaviest columns.

    ``requests`` has the columns of ``REQUEST_SCHEMA`` with one value per request; ``texts``,
    ``scores`` (NaN: none) and ``final`` have an entry for each of its rows. ``final`` marks the
    requests of the final moment (see ``moments``): the figures of a report are theirs, but for the
    quality-latency curve. ``chunks`` has the columns of ``CHUNK_SCHEMA`` with the request's row
    number as ``owner`` for its id and documents. ``events`` are those of the final successes by
    delivery.
    """

    run: Run
    requests: pa.Table
    texts: pa.ChunkedArray
    final: Booleans
    scores: Mapping[str, Floats]
    events: Mapping[str, TokenEvents]
    examples: Mapping[str, str]
    retried: Mapping[str, int]
    chunks: pa.Table
    queries: pa.Table

    @classmethod
    def read(cls, run: Run) -> "RunData":
        """Read the run's tables.

        Raises:
            RunError: a table is missing or damaged.
        """
        requests = read_columns(run.path / "requests.parquet", REQUEST_SCHEMA, _LIGHT)
        queries = run.queries()
        final = final_mask(requests)
        scan: RequestScan = scan_requests(run, final, queries)
        return cls(
            run=run,
            requests=requests,
            texts=scan.texts,
            final=final,
            scores=dict(scan.scores) | values_of(read_scores(run), requests),
            events=scan.events,
            examples=scan.examples,
            retried=scan.retried,
            chunks=_chunks(run, requests["request_id"].combine_chunks()),
            queries=queries,
        )

    @property
    def info(self) -> RunInfo:
        """What the run says of itself."""
        return self.run.info

    @property
    def moment(self) -> str | None:
        """When the final requests were asked; None: at the end of their retrieval."""
        return early_moment(self.requests)

    def of_final(self) -> "RunData":
        """The same with the final requests alone."""
        if self.final.all():
            return self
        numbers = np.cumsum(self.final) - 1
        owner = self.chunks["owner"].to_numpy()
        kept = self.chunks.filter(pa.array(self.final[owner]))
        renumbered = pa.array(numbers[kept["owner"].to_numpy()], pa.int32())
        mask = pa.array(self.final)
        return replace(
            self,
            requests=self.requests.filter(mask),
            texts=self.texts.filter(mask),
            final=np.ones(int(self.final.sum()), dtype=np.bool_),
            scores={name: values[self.final] for name, values in self.scores.items()},
            chunks=kept.set_column(kept.column_names.index("owner"), "owner", renumbered),
        )

    def chunks_of(self, request_ids: list[str]) -> pa.Table:
        """The chunks of a few requests, with all columns of ``CHUNK_SCHEMA``."""
        wanted = pa.array(request_ids, pa.string())
        found = [
            batch.filter(pc.is_in(batch["request_id"], wanted))
            for batch in column_batches(
                self.run.path / "chunks.parquet", CHUNK_SCHEMA, CHUNK_SCHEMA.names
            )
        ]
        return pa.concat_tables(found) if found else CHUNK_SCHEMA.empty_table()


def _chunks(run: Run, request_ids: pa.Array) -> pa.Table:
    """All chunks that belong to a request, by the request's row."""
    found = []
    names = ["request_id", *_OF_CHUNKS]
    for batch in column_batches(run.path / "chunks.parquet", CHUNK_SCHEMA, names):
        owner = pc.index_in(batch["request_id"], value_set=request_ids)
        light = batch.drop_columns("request_id").append_column("owner", owner)
        found.append(light.filter(pc.is_valid(owner)))
    if found:
        return pa.concat_tables(found)
    empty = CHUNK_SCHEMA.empty_table().select(_OF_CHUNKS)
    return empty.append_column("owner", pa.array([], pa.int32()))
