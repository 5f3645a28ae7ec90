"""``scores.parquet`` and ``scores.json`` in a run folder: scores that need a model to be given.

They are made by ``s2l score`` after the replay, and a report shows them where they are there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.replayer.run import Run, RunError
from s2l.reports.metrics import Floats
from s2l.workloads.durable import durable_file, write_durably

SCORE_SCHEMA: Final = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("label", pa.string()),
        pa.field("detail", pa.string()),
    ]
)
"""A row per request and scorer. ``scorer`` is ``semantic_similarity`` (value -1 to 1) or ``judge``
(1 correct, 0 incorrect or not attempted; ``label`` says which). ``value`` is null where no score
could be given, and ``detail`` says why."""

SIMILARITY: Final = "semantic_similarity"
JUDGE: Final = "judge"

_TABLE: Final = "scores.parquet"
_SOURCES: Final = "scores.json"


class ScoreSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What made the scores of one scorer: the model, and for a judge all that it was asked.

    Tokens are those that grading this run costs; ``cached_requests`` of them were already paid for.
    None where the server did not say.
    """

    model: str
    url: str = ""
    prompt: str = ""
    requests: int = 0
    cached_requests: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """One request's score by one scorer; ``value`` is None where none could be given."""

    request_id: str
    value: float | None
    label: str | None = None
    detail: str | None = None


def read_scores(run: Run) -> pa.Table:
    """All scores beside a run, with the columns of ``SCORE_SCHEMA``; no rows where there are none.

    Raises:
        RunError: the file is damaged.
    """
    file = run.path / _TABLE
    if not file.is_file():
        return SCORE_SCHEMA.empty_table()
    try:
        return pq.read_table(file).select(SCORE_SCHEMA.names).cast(SCORE_SCHEMA)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise RunError(f"{file}: cannot be read: {error}") from None


def read_sources(run: Run) -> dict[str, ScoreSource]:
    """What made the scores, by scorer; empty where there are none.

    Raises:
        RunError: the file is damaged.
    """
    file = run.path / _SOURCES
    if not file.is_file():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, ScoreSource])
    except msgspec.MsgspecError as error:
        raise RunError(f"{file}: damaged: {error}") from None


def values_of(scores: pa.Table, requests: pa.Table) -> dict[str, Floats]:
    """The values of each scorer there is, a value per request; NaN where one has none."""
    ids = requests["request_id"].combine_chunks()
    found = {}
    for scorer in sorted(scores["scorer"].unique().to_pylist()):
        mine = scores.filter(pc.equal(scores["scorer"], scorer))
        places = pc.index_in(ids, value_set=mine["request_id"].combine_chunks())
        values = mine["value"].combine_chunks().take(places)
        found[scorer] = np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    return found


def write_scores(run: Run, scorer: str, scores: Sequence[Score], source: ScoreSource) -> None:
    """Put one scorer's scores beside the run; those of other scorers stay as they are."""
    before = read_scores(run)
    kept = before.filter(pc.not_equal(before["scorer"], scorer))
    rows = [
        {
            "request_id": one.request_id,
            "scorer": scorer,
            "value": one.value,
            "label": one.label,
            "detail": one.detail,
        }
        for one in scores
    ]
    table = pa.concat_tables([kept, pa.Table.from_pylist(rows, SCORE_SCHEMA)])
    table = table.sort_by([("scorer", "ascending"), ("request_id", "ascending")])
    sources = read_sources(run) | {scorer: source}
    with durable_file(run.path / _TABLE) as file:
        pq.write_table(table, file, compression="zstd")
    _write_json(run.path / _SOURCES, sources)


def _write_json(path: Path, sources: dict[str, ScoreSource]) -> None:
    ordered = {name: sources[name] for name in sorted(sources)}
    write_durably(path, msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n")
