"""Semantic similarity: the cosine of sentence embeddings, answer to reference answer."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s2l.reports.answers import References
from s2l.reports.metrics import Floats
from s2l.reports.scores import Score

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""A row for each text, of any length other than 0."""


def similarities(
    answers: Sequence[str], references: Sequence[Sequence[str]], embed: Embed
) -> Floats:
    """The cosine of each answer to the nearest of its references, -1 to 1.

    NaN for an answer without words and one without references. Every text is embedded once.
    """
    asked = [
        bool(a.strip()) and any(r.strip() for r in known) for a, known in _zip(answers, references)
    ]
    texts = dict.fromkeys(
        text
        for (answer, known), wanted in zip(_zip(answers, references), asked, strict=True)
        if wanted
        for text in (answer, *(one for one in known if one.strip()))
    )
    place = {text: row for row, text in enumerate(texts)}
    vectors = _units(embed(list(texts))) if texts else np.empty((0, 0))
    found = np.full(len(answers), np.nan)
    for at, (answer, known) in enumerate(_zip(answers, references)):
        if asked[at]:
            rows = [place[one] for one in known if one.strip()]
            found[at] = np.clip((vectors[rows] @ vectors[place[answer]]).max(), -1, 1)
    return found


def similarity_scores(requests: pa.Table, references: References, embed: Embed) -> list[Score]:
    """A score for each success; without a value where there is nothing to compare."""
    done = requests.filter(requests["error_type"].is_null())
    ids, queries, texts = (
        done[name].to_pylist() for name in ("request_id", "query_id", "output_text")
    )
    known = [references.get(query_id, ()) for query_id in queries]
    values = similarities(texts, known, embed)
    return [
        Score(request_id, None, detail=_why(refs))
        if np.isnan(value)
        else Score(request_id, float(value))
        for request_id, value, refs in zip(ids, values, known, strict=True)
    ]


def _why(references: Sequence[str]) -> str:
    return "the answer has no words" if references else "the query has no reference answers"


def _zip(
    answers: Sequence[str], references: Sequence[Sequence[str]]
) -> list[tuple[str, Sequence[str]]]:
    return list(zip(answers, references, strict=True))


def _units(vectors: npt.NDArray[np.float32]) -> Floats:
    """Each row divided by its length; a row of zeros stays one."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    units = np.zeros_like(wide)
    np.divide(wide, lengths, out=units, where=lengths > 0)
    return units
