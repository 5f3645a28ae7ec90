"""One side of a comparison: a run, or all runs of a sweep as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Finding, Run, RunInfo, Validity
from s2l.reports.request_metrics import light_requests, request_scores
from s2l.reports.sweep import is_sweep, offered_rate, sweep_runs

_VERDICTS: Final = ("valid", "degraded", "invalid")
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: ``requests`` have the columns of ``REQUEST_SCHEMA`` but for the token
    times, and a column for each score. ``info`` is the run's; of a sweep the first run's, with the
    worst verdict and all findings."""

    path: Path
    info: RunInfo
    requests: pa.Table

    @property
    def name(self) -> str:
        """The folder's."""
        return self.path.resolve().name

    @classmethod
    def open(cls, path: Path) -> "Side":
        """Read a run's folder, or a sweep's.

        Raises:
            RunError: it is neither, or cannot be read.
        """
        if is_sweep(path):
            return cls.of_sweep(path, sweep_runs(path))
        return cls.of(Run.open(path))

    @classmethod
    def of(cls, run: Run) -> "Side":
        """One run."""
        return cls(run.path, run.info, _scored(run))

    @classmethod
    def of_sweep(cls, path: Path, runs: Sequence[Run]) -> "Side":
        """Runs that differ in their offered rate, which keeps their requests apart."""
        found = [finding for run in runs for finding in _findings(run)]
        verdict = max((run.info.validity.verdict for run in runs), key=_badness)
        info = msgspec.structs.replace(
            runs[0].info,
            validity=Validity(verdict=verdict, findings=found),
            interrupted=any(run.info.interrupted for run in runs),
        )
        tables = [_with_rate(_scored(run), run.info) for run in runs]
        return cls(path, info, pa.concat_tables(tables, promote_options="default"))


def _scored(run: Run) -> pa.Table:
    requests = light_requests(run)
    for name, values in request_scores(requests, run).items():
        requests = requests.append_column(name, pa.array(values))
    return requests


def _with_rate(requests: pa.Table, info: RunInfo) -> pa.Table:
    """With the run's own rate where a request states none."""
    rate = offered_rate(info)
    if rate is None:
        return requests
    filled = pc.fill_null(requests["rate"], rate)
    return requests.set_column(requests.column_names.index("rate"), "rate", filled)


def _findings(run: Run) -> list[Finding]:
    return [
        msgspec.structs.replace(finding, text=f"{run.path.name}: {finding.text}")
        for finding in run.info.validity.findings
    ]


def _badness(verdict: str) -> int:
    return _VERDICTS.index(verdict) if verdict in _VERDICTS else len(_VERDICTS)
