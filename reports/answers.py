"""How good a delivery's answers are, and whether both deliveries gave the same ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats
from s2l.reports.pairs import Pairs
from s2l.reports.quality import SCORERS
from s2l.reports.refusals import refusals

References = Mapping[str, Sequence[str]]

REFUSAL: Final = "refusal"
"""1 where an answer declines; it needs no reference."""


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """Mean scores over the successes that have one, and over how many.

    ``scored`` answers have references; their scores are 0 to 1. ``refused`` is the share of answers
    that decline. ``others`` holds the means of scorers that need a model (``semantic_similarity``,
    ``judge``), and ``n_others`` over how many, where the run has them.
    """

    scored: int
    exact_match: float | None
    token_f1: float | None
    contains_answer: float | None
    refused: float | None
    others: dict[str, float | None]
    n_others: dict[str, int]

    @classmethod
    def of(cls, scores: Mapping[str, Floats]) -> "AnswerQuality":
        """Average the scores of one delivery, a value per request; NaN has none."""
        means = {name: mean(values) for name, values in scores.items()}
        counts = {name: int((~np.isnan(values)).sum()) for name, values in scores.items()}
        others = [name for name in scores if name not in SCORERS and name != REFUSAL]
        return cls(
            scored=counts["exact_match"],
            exact_match=means["exact_match"],
            token_f1=means["token_f1"],
            contains_answer=means["contains_answer"],
            refused=means[REFUSAL],
            others={name: means[name] for name in others},
            n_others={name: counts[name] for name in others},
        )


@dataclass(frozen=True, slots=True)
class Parity:
    """Share of the pairs whose texts are identical. ``share`` is None where it means nothing:
    without a pair, or when answers are sampled at a ``temperature`` above 0."""

    pairs: int
    identical: int
    share: float | None
    temperature: float | None

    @classmethod
    def of(cls, pairs: Pairs, options: Mapping[str, Any], texts: pa.ChunkedArray) -> "Parity":
        """Compare the texts.

        Args:
            pairs: of the requests.
            options: the run's, of which ``temperature`` is read.
            texts: the answer of each request that the pairs were made of.
        """
        stated = options.get("temperature")
        temperature = float(stated) if isinstance(stated, int | float) else None
        same = int(pc.sum(identical(pairs, texts)).as_py() or 0)
        means_something = len(pairs) > 0 and not temperature
        share = same / len(pairs) if means_something else None
        return cls(len(pairs), same, share, temperature)


def mean(values: Floats) -> float | None:
    """The mean of the values that are not NaN; None without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def identical(pairs: Pairs, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each pair, whether both texts are the same to the character."""
    return pc.equal(texts.take(pairs.wait_rows), texts.take(pairs.stream_rows))


def text_scores(requests: pa.Table, references: References) -> dict[str, Floats]:
    """All scores that need no model, by name: a value per request, NaN where it has none."""
    texts = requests["output_text"].to_pylist()
    known = [references.get(query_id) for query_id in requests["query_id"].to_pylist()]
    scorers, nothing = tuple(SCORERS.values()), (np.nan,) * len(SCORERS)
    # All scores of one answer together: they share its normalised text.
    rows = [
        [scorer(text, answers) for scorer in scorers] if answers else nothing
        for text, answers in zip(texts, known, strict=True)
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, len(scorers)).T
    found = dict(zip(SCORERS, columns.copy(), strict=True))
    return found | {REFUSAL: refusals(requests)}
