"""What made the scores that need a model, and how a judge's grades fall, as text."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import Run
from s2l.reports.run_data import RunData
from s2l.reports.scores import JUDGE, ScoreSource, read_scores, read_sources
from s2l.reports.tables import FigureRow
from s2l.reports.units import number, percent
from s2l.workloads.plural import counted


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One scorer: a sentence, and the prompt that a judge was given (else empty)."""

    text: str
    prompt: str


def source_notes(run: Run) -> list[SourceNote]:
    """A note for each scorer that has put scores beside the run.

    Raises:
        RunError: the file that says so is damaged.
    """
    return [SourceNote(_text(name, one), one.prompt) for name, one in read_sources(run).items()]


def grade_figures(data: RunData, deliveries: Sequence[str]) -> list[FigureRow]:
    """The share of each grade among those that a judge gave, by delivery; empty without any."""
    scores = read_scores(data.run)
    graded = scores.filter(pc.and_(pc.equal(scores["scorer"], JUDGE), pc.is_valid(scores["label"])))
    if not graded.num_rows:
        return []
    ids = data.requests["request_id"].combine_chunks()
    places = pc.index_in(graded["request_id"], value_set=ids)
    delivery = data.requests["delivery"].take(places)
    labels = sorted(graded["label"].unique().to_pylist())
    return [
        FigureRow(
            f"Judged {label.replace('_', ' ')}",
            "of the answers graded",
            tuple(_share(graded, delivery, name, label) for name in deliveries),
        )
        for label in labels
        if label != "correct"
    ]


def _share(graded: pa.Table, delivery: pa.ChunkedArray, name: str, label: str) -> str:
    mine = pc.fill_null(pc.equal(delivery, name), False)
    n = pc.sum(mine).as_py() or 0
    with_label = pc.sum(pc.and_(mine, pc.equal(graded["label"], label))).as_py() or 0
    return percent(with_label / n if n else None)


def _text(name: str, source: ScoreSource) -> str:
    where = f" at {source.url}" if source.url else ""
    parts = [f"{name.replace('_', ' ').capitalize()}: by {source.model}{where}"]
    if source.requests:
        parts.append(f"{counted(source.requests, 'request')}, {source.cached_requests:,} cached")
    if source.prompt_tokens is not None or source.completion_tokens is not None:
        tokens = (number(source.prompt_tokens), number(source.completion_tokens))
        parts.append(f"{tokens[0]} prompt tokens and {tokens[1]} completion tokens")
    return "; ".join(parts) + "."
