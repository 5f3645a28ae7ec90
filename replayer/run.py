"""A run: what a replay recorded. Raw times only; every metric is derived from them elsewhere."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

RUN_FORMAT: Final = "s2l-run/1"

_TIME = pa.int64()  # microseconds since the run's start, one clock; null: never happened

REQUEST_SCHEMA: Final = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("delivery", pa.string(), nullable=False),
        pa.field("rate", pa.float64()),
        pa.field("start_intended_us", _TIME, nullable=False),
        pa.field("start_us", _TIME),
        pa.field("context_intended_us", _TIME, nullable=False),
        pa.field("ask_us", _TIME),
        pa.field("context_us", _TIME),
        pa.field("first_token_us", _TIME),
        pa.field("first_answer_us", _TIME),
        pa.field("last_token_us", _TIME),
        pa.field("end_us", _TIME),
        pa.field("token_us", pa.list_(pa.int64()), nullable=False),
        pa.field("token_n", pa.list_(pa.int32()), nullable=False),
        pa.field("prompt_tokens", pa.int32()),
        pa.field("cached_tokens", pa.int32()),
        pa.field("invalidated_tokens", pa.int32()),
        pa.field("output_tokens", pa.int32()),
        pa.field("discarded_tokens", pa.int32()),
        pa.field("reasoning_tokens", pa.int32()),
        pa.field("token_source", pa.string()),
        pa.field("output_text", pa.string(), nullable=False),
        pa.field("finish_reason", pa.string()),
        pa.field("error_type", pa.string()),
        pa.field("error", pa.string()),
        pa.field("attempt_us", pa.list_(pa.int64())),
        pa.field("attempt_errors", pa.list_(pa.string())),
        pa.field("answer_at", pa.string()),
        pa.field("repeat", pa.int32()),
        pa.field("worker", pa.int32()),
    ]
)
"""One row per request and delivery, failed ones too. A request succeeded when ``error_type`` is
null, and was never sent when ``error_type`` is ``unsent``. ``ask_us`` is when the client gave the
question to its connection, ``context_us`` when it went out there. ``first_answer_us`` is the first
text that is no reasoning. ``attempt_us`` are the starts of all attempts, and ``attempt_errors`` how
all but the last one failed; both null where there was one attempt. ``answer_at`` says by when the
question was asked where that was not at the end of the retrieval: a share of the retrieval's time
(``25%``) or seconds since the query's start (``2s``). ``repeat`` counts from 0; ``worker`` is the
sender, null where there is one."""

CHUNK_SCHEMA: Final = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("seq", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("arrival_intended_us", _TIME, nullable=False),
        pa.field("send_intended_us", _TIME, nullable=False),
        pa.field("handed_us", _TIME),
        pa.field("sent_us", _TIME),
        pa.field("prefilled_us", _TIME),
        pa.field("tokens", pa.int32()),
        pa.field("context_tokens", pa.int32()),
        pa.field("kept_tokens", pa.int32()),
        pa.field("doc_ids", pa.list_(pa.string())),
    ]
)
"""One row per context chunk that its delivery sends. ``tokens`` are those of its documents
``doc_ids``, in their places; ``context_tokens`` those of the whole context after it, and
``kept_tokens`` those of the context before it that the context after it still begins with.
``kind`` is ``append`` or ``replace``. ``arrival_intended_us`` is when the trace
has it arrive, ``send_intended_us`` when this delivery is to send it (the same when streaming),
``handed_us`` when the client gave it to its connection and ``sent_us`` when it went out there:
between them lies what the server or the protocol makes it wait for;
``prefilled_us`` when the server said that it holds it (null where the server does not say)."""

QUERY_SCHEMA: Final = pa.schema(
    [
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("answers", pa.list_(pa.string()), nullable=False),
    ]
)
"""The queries that were replayed, so that a run can be judged without its trace."""

CLIENT_SCHEMA: Final = pa.schema(
    [
        pa.field("delivery", pa.string(), nullable=False),
        pa.field("time_us", _TIME, nullable=False),
        pa.field("loop_lag_us", pa.int64(), nullable=False),
        pa.field("cpu_s", pa.float64(), nullable=False),
        pa.field("rss_bytes", pa.int64(), nullable=False),
        pa.field("gc_pause_us", pa.int64()),
        pa.field("in_flight", pa.int32()),
        pa.field("worker", pa.int32()),
        pa.field("answer_at", pa.string()),
    ]
)
"""Samples of the client itself: how late the event loop was, CPU seconds used so far, time spent in
garbage collection so far, and requests under way. A pass is told by ``delivery`` and
``answer_at``."""

SERVER_SCHEMA: Final = pa.schema(
    [
        pa.field("delivery", pa.string(), nullable=False),
        pa.field("time_us", _TIME, nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("answer_at", pa.string()),
    ]
)
"""What the server's ``/metrics`` said, a row per metric and time. ``name`` is one of ours, whatever
the server calls it: ``running``, ``waiting`` (requests), ``kv_usage`` (0 to 1), ``preemptions``,
``prefix_queries``, ``prefix_hits`` (tokens, counters), ``prompt_tokens``, ``output_tokens``
(counters), and this project's own ``s2l_…`` as they are, labels in braces."""


class RunError(Exception):
    """A run that cannot be read. Its text is one line for the person who gave it."""


class TraceRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which trace was replayed: its name, folder and the sha256 of its manifest."""

    name: str
    path: str
    sha256: str


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. ``settings`` are those the server states, without secrets."""

    url: str
    adapter: str
    server: str = ""
    server_version: str = ""
    model: str = ""
    embedded: bool = False
    settings: dict[str, Any] = {}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One validity check that did not pass (``degraded``, ``invalid``) or is worth saying."""

    check: str
    severity: str
    text: str


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """``verdict`` is ``valid``, ``degraded`` or ``invalid``: the worst of its findings."""

    verdict: str
    findings: list[Finding] = []


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Requests over all deliveries. planned = sent + unsent, sent = succeeded + failed."""

    planned: int
    sent: int
    succeeded: int
    unsent: int
    failed: dict[str, int] = {}
    """Failures by ``error_type``."""


class PassWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery's pass over the queries, in microseconds since the run's start."""

    delivery: str
    start_us: int
    end_us: int
    answer_at: str | None = None
    """When the question was asked, where that was not at the retrieval's end."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """``run.json``: all that is needed to judge the run and to repeat it. No secrets."""

    format: str
    created_utc: str
    command: list[str]
    options: dict[str, Any]
    seed: int
    trace: TraceRef
    target: Target
    host: dict[str, Any]
    packages: dict[str, str]
    schedule: dict[str, Any]
    warmup: dict[str, Any]
    passes: list[PassWindow]
    validity: Validity
    counts: Counts
    interrupted: bool = False
    calibration: dict[str, Any] | None = None
    """The client's own error on this machine: ``lag_p99_ms``, ``ttft_error_p50_ms``,
    ``ttft_error_p99_ms``, ``rate_qps``, ``requests``, ``created_utc``; None: not calibrated."""


class Run:
    """A run folder, read only. Tables come whole or by record batch."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Read ``run.json``.

        Raises:
            RunError: nothing is there, it is not a run, or it has another major version.
        """
        file = path / "run.json"
        if not path.is_dir():
            raise RunError(f"{path}: no such run folder")
        if not file.is_file() and (path / "journal" / "begun.json").is_file():
            raise RunError(f"{path}: its replay was killed, or goes on; see s2l report {path}")
        if not file.is_file():
            raise RunError(f"{path}: not a run (no run.json); name a folder written by s2l replay")
        try:
            head = msgspec.json.decode(file.read_bytes())
            if isinstance(head, dict) and (found := head.get("format")) != RUN_FORMAT:
                raise RunError(f"{path}: run format {found!r}; this version reads {RUN_FORMAT}")
            info = msgspec.convert(head, RunInfo)
        except msgspec.MsgspecError as error:
            raise RunError(f"{file}: damaged: {error}") from None
        return cls(path, info)

    def requests(self) -> pa.Table:
        """All requests, with the columns of ``REQUEST_SCHEMA``."""
        return self._table("requests.parquet", REQUEST_SCHEMA)

    def chunks(self) -> pa.Table:
        """All context chunks, with the columns of ``CHUNK_SCHEMA``."""
        return self._table("chunks.parquet", CHUNK_SCHEMA)

    def client(self) -> pa.Table:
        """The client's samples of itself, with the columns of ``CLIENT_SCHEMA``."""
        return self._table("client.parquet", CLIENT_SCHEMA)

    def server(self) -> pa.Table:
        """What the server said of itself, with the columns of ``SERVER_SCHEMA``; no rows where
        nothing was scraped."""
        if not (self.path / "server.parquet").is_file():
            return SERVER_SCHEMA.empty_table()
        return self._table("server.parquet", SERVER_SCHEMA)

    def queries(self) -> pa.Table:
        """The queries that were replayed, with the columns of ``QUERY_SCHEMA``."""
        return self._table("queries.parquet", QUERY_SCHEMA)

    def _table(self, name: str, schema: pa.Schema) -> pa.Table:
        file = self.path / name
        try:
            table = pq.read_table(file)
            for field in schema:  # columns that came later, in a run written before them
                if field.name not in table.column_names and field.nullable:
                    nulls = pa.nulls(len(table), field.type)
                    table = table.append_column(field, nulls)
            return table.select(schema.names).cast(schema)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise RunError(f"{file}: cannot be read: {error}") from None
