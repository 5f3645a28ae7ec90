"""The requests of a run as columns of plain values, for the page's own CSV file."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from s2l.reports import metrics
from s2l.reports.metrics import Floats
from s2l.reports.run_data import RunData
from s2l.reports.thinning import thinned

ROW_LIMIT: Final = 2_000
WITHOUT_LIMIT: Final = 200
"""So many of them at most are requests without a TTFT."""
_DECIMALS: Final = 6

_CARRIED: Final = (
    *("request_id", "query_id", "delivery", "answer_at", "repeat", "error_type"),
    *("prompt_tokens", "cached_tokens", "invalidated_tokens", "output_tokens"),
)
_SECONDS: Final = {
    "ttft_s": metrics.ttft_s,
    "ttft_service_s": metrics.ttft_service_s,
    "ttft_user_s": metrics.ttft_user_s,
    "tpot_s": metrics.tpot_s,
    "e2e_s": metrics.e2e_s,
    "schedule_lag_s": metrics.schedule_lag_s,
}


@dataclass(frozen=True, slots=True)
class RequestRows:
    """Columns by name, each with a value per request shown, of ``total`` requests."""

    columns: dict[str, list[Any]]
    shown: int
    total: int


def request_rows(data: RunData) -> RequestRows:
    """Of a large run a choice by TTFT that keeps the extremes, in the order of the run.

    Columns that are empty throughout are left out.
    """
    requests = data.requests
    ttfts = metrics.ttft_s(requests)
    ttfts[np.asarray(requests["error_type"].is_valid())] = np.nan
    chosen = _chosen(ttfts)
    mine = requests.take(pa.array(chosen))
    start = metrics.column(mine, "start_intended_us") / metrics.US_PER_S
    columns = {name: mine[name].to_pylist() for name in _CARRIED}
    columns["start_intended_s"] = _plain(start)
    failed = np.asarray(mine["error_type"].is_valid())
    for name, metric in _SECONDS.items():
        values = metric(mine)
        if name != "schedule_lag_s":
            values[failed] = np.nan
        columns[name] = _plain(values)
    for name, values in data.scores.items():
        columns[name] = _plain(values[chosen])
    filled = {n: v for n, v in columns.items() if any(x is not None for x in v)}
    return RequestRows(filled, int(chosen.size), requests.num_rows)


def _chosen(ttfts: Floats) -> Any:
    """Row numbers: the extremes and a choice between of those with a TTFT, and some without."""
    if ttfts.size <= ROW_LIMIT:
        return np.arange(ttfts.size)
    without = np.flatnonzero(np.isnan(ttfts))
    some = without[np.linspace(0, without.size - 1, min(without.size, WITHOUT_LIMIT)).astype(int)]
    order = np.argsort(ttfts, kind="stable")[: ttfts.size - without.size]  # NaN last
    kept = order[thinned(order.size, ROW_LIMIT - some.size)]
    return np.sort(np.r_[kept, some])


def _plain(values: Floats) -> list[float | None]:
    return [None if value != value else round(value, _DECIMALS) for value in values.tolist()]
