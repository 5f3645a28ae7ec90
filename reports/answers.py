"""How good a delivery's answers are, and whether both deliveries gave the same ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats, succeeded
from s2l.reports.pairs import Pairs
from s2l.reports.quality import SCORERS, Scorer

References = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """Mean scores (0 to 1) over ``scored`` answers: successes whose query has references."""

    scored: int
    exact_match: float | None
    token_f1: float | None
    contains_answer: float | None

    @classmethod
    def of(cls, requests: pa.Table, references: References) -> "AnswerQuality":
        """Score the successes among the requests."""
        done = succeeded(requests)
        scores = {name: score(done, references, scorer) for name, scorer in SCORERS.items()}
        scored = int((~np.isnan(scores["exact_match"])).sum())
        means = {
            name: float(np.nanmean(found)) if scored else None for name, found in scores.items()
        }
        return cls(scored=scored, **means)


@dataclass(frozen=True, slots=True)
class Parity:
    """Share of the pairs whose texts are identical. ``share`` is None where it means nothing:
    without a pair, or when answers are sampled at a ``temperature`` above 0."""

    pairs: int
    identical: int
    share: float | None
    temperature: float | None

    @classmethod
    def of(cls, pairs: Pairs, options: Mapping[str, Any]) -> "Parity":
        """Compare the texts; ``options`` are the run's, of which ``temperature`` is read."""
        stated = options.get("temperature")
        temperature = float(stated) if isinstance(stated, int | float) else None
        same = int(pc.sum(identical(pairs)).as_py() or 0)
        means_something = len(pairs) > 0 and not temperature
        share = same / len(pairs) if means_something else None
        return cls(len(pairs), same, share, temperature)


def identical(pairs: Pairs) -> pa.ChunkedArray:
    """For each pair, whether both texts are the same to the character."""
    return pc.equal(pairs.wait["output_text"], pairs.stream["output_text"])


def score(requests: pa.Table, references: References, scorer: Scorer) -> Floats:
    """One score per request; NaN where its query has no reference answers."""
    ids, texts = requests["query_id"].to_pylist(), requests["output_text"].to_pylist()
    found = (
        scorer(text, known) if (known := references.get(query_id)) else np.nan
        for query_id, text in zip(ids, texts, strict=True)
    )
    return np.fromiter(found, dtype=np.float64, count=len(ids))
