"""The shape of RAGPulse's 7,106 requests, fitted to what was measured of them.

Four in five have passages, most of these six; the others have a history and a question alone.
When passages came is not in that trace: here they come at once.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.synth.draws import Counts, Curve, Floats, Source, blocks, correlated
from s2l.workloads.synth.profile import BLOCK_QUERIES
from s2l.workloads.synth.shape import ArrivalShape, QueryShape

# Requests by number of passages, of 0 to 10.
PASSAGES: Final = Counts(0, (1448, 59, 34, 45, 25, 26, 5222, 43, 75, 100, 29))
PASSAGE_TOKENS: Final = Curve(
    (
        (0.001, 3),
        (0.01, 62),
        (0.05, 127),
        (0.25, 207),
        (0.5, 281),
        (0.75, 329),
        (0.95, 392),
        (0.99, 512),
        (0.999, 512),
    )
)
SYSTEM_TOKENS: Final = (1028, 1461)
"""Without passages and with them; all but a few requests have just these."""

HISTORY_TOKENS: Final = Curve(
    ((0.001, 10.5), (0.45, 11), (0.55, 48), (0.75, 360), (0.95, 1270), (0.99, 2150), (0.999, 4600))
)
QUESTION_TOKENS: Final = Curve(
    ((0.001, 1), (0.05, 2), (0.25, 4), (0.5, 6), (0.75, 9), (0.95, 15), (0.99, 28), (0.999, 100))
)
ANSWER_TOKENS: Final = (
    Curve(
        ((0.001, 7), (0.05, 36), (0.25, 75), (0.5, 112), (0.75, 234), (0.95, 580), (0.999, 1800))
    ),
    Curve(
        ((0.001, 24), (0.05, 84), (0.25, 163), (0.5, 259), (0.75, 417), (0.95, 679), (0.999, 2100))
    ),
)
_ANSWER_BY_HISTORY: Final = 0.45


class RagpulseProfile:
    """Passages, history, question and answer; longer histories have longer answers."""

    name = "ragpulse"

    def shapes(self, n: int, seed: int) -> Iterator[QueryShape]:
        """The shapes of n queries."""
        for number, size in blocks(n, BLOCK_QUERIES):
            yield from _block(size, Source(4, seed, number))


def _block(n: int, source: Source) -> Iterator[QueryShape]:
    passages = PASSAGES.quantiles(source.strata(source.uniforms(n)))
    by_history = source.normals(n)
    history = _whole(HISTORY_TOKENS.quantiles(source.strata(by_history)))
    question = _whole(QUESTION_TOKENS.quantiles(source.strata(source.normals(n))))
    by_answer = correlated(source.normals(n), by_history, _ANSWER_BY_HISTORY)
    places = source.strata(by_answer)
    answers = [_whole(curve.quantiles(places)) for curve in ANSWER_TOKENS]
    tokens = _whole(PASSAGE_TOKENS.quantiles(source.strata(source.uniforms(int(passages.sum())))))
    at = 0
    for i, count in enumerate(passages.tolist()):
        retrieved = count > 0
        before = (SYSTEM_TOKENS[retrieved], history[i])
        yield _shape(before, tokens[at : at + count], question[i], answers[retrieved][i])
        at += count


def _shape(before: tuple[int, ...], passages: list[int], question: int, answer: int) -> QueryShape:
    steps = [tuple(range(len(before))), *((len(before) + k,) for k in range(len(passages)))]
    arrivals = tuple(ArrivalShape(ArrivalKind.APPEND, 0, 0, numbers) for numbers in steps)
    return QueryShape(arrivals, 0, (*before, *passages), question, answer)


def _whole(values: Floats) -> list[int]:
    found: list[int] = np.rint(values).astype(np.int64).tolist()
    return found
