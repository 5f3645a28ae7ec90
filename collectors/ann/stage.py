"""What a stage of a search is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.vectors import Matrix


@dataclass(frozen=True, slots=True)
class Question:
    """A query's text and its unit vector, of shape (1, dimensions)."""

    text: str
    vector: Matrix


class Stage(Protocol):
    """One way to find better passages. It keeps nothing between questions: threads share it."""

    @property
    def name(self) -> str:
        """What arrivals call it."""

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        """The pool after each step, from the one that the stage before ended with.

        It is the same object where the step changed nothing. Whoever iterates may stop early.
        """
