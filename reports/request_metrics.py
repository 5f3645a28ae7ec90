"""The metrics that every request has one of, by name, and the table of them for one run."""

from typing import Final

import numpy as np
import pyarrow as pa

from s2l.replayer.run import REQUEST_SCHEMA, Run
from s2l.reports import metrics
from s2l.reports.answers import text_scores
from s2l.reports.attainment import PER_REQUEST
from s2l.reports.columns import read_columns
from s2l.reports.metrics import Floats
from s2l.reports.scores import read_scores, values_of
from s2l.reports.summary import references_of

_CARRIED: Final = (
    *("request_id", "query_id", "delivery", "answer_at", "rate", "repeat", "worker"),
    *("error_type", "error", "finish_reason", "token_source"),
    *("prompt_tokens", "cached_tokens", "invalidated_tokens", "output_tokens"),
)
_HEAVY: Final = ("token_us", "token_n", "attempt_us", "attempt_errors")
_STARTS: Final = {"start_intended_s": "start_intended_us", "start_s": "start_us"}


def light_requests(run: Run) -> pa.Table:
    """A run's requests without the times of their tokens, which are most of their bytes.

    Raises:
        RunError: the table is missing or damaged.
    """
    names = [name for name in REQUEST_SCHEMA.names if name not in _HEAVY]
    return read_columns(run.path / "requests.parquet", REQUEST_SCHEMA, names)


def request_scores(requests: pa.Table, run: Run) -> dict[str, Floats]:
    """Answer scores by name, a value per request; NaN where one cannot be given.

    Those against reference answers, refusals (1.0: the answer declines), and the ones that
    ``s2l score`` has put beside the run.
    """
    found = text_scores(requests, references_of(run.queries()))
    failed = np.asarray(requests["error_type"].is_valid())
    for values in found.values():
        values[failed] = np.nan
    return found | values_of(read_scores(run), requests)


def metric_table(run: Run) -> pa.Table:
    """One row per request: what it is, its latencies in seconds, its tokens, and its scores.

    Latencies and scores of failed requests are null: they are in no statistic.
    """
    requests = light_requests(run)
    failed = np.asarray(requests["error_type"].is_valid())
    columns: dict[str, pa.Array] = {name: requests[name] for name in _CARRIED}
    for name, source in _STARTS.items():
        columns[name] = _nullable(metrics.column(requests, source) / metrics.US_PER_S)
    columns["schedule_lag_s"] = _nullable(metrics.schedule_lag_s(requests))
    for name, metric in PER_REQUEST.items():
        columns[name] = _nullable(np.where(failed, np.nan, metric(requests)))
    columns["prefill_hidden"] = _nullable(
        np.where(failed, np.nan, metrics.prefill_hidden(requests))
    )
    for name, values in request_scores(requests, run).items():
        columns[name] = _nullable(values)
    columns["output_text"] = requests["output_text"]
    return pa.table(columns)


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)
