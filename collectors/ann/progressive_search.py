"""A search that tells of every change of its best documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.stage import Question, Stage


@dataclass(frozen=True, slots=True)
class Update:
    """The ordered best rows, new at ``at_us``; the step that brought them began at ``start_us``.

    ``step`` counts from 1 within the stage.
    """

    stage: str
    step: int
    start_us: int
    at_us: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """A finished search: times in microseconds, ``steps`` taken by stage."""

    updates: tuple[Update, ...]
    start_us: int
    end_us: int
    steps: Mapping[str, int]

    @property
    def rows(self) -> tuple[int, ...]:
        """The final best rows."""
        return self.updates[-1].rows if self.updates else ()


class ProgressiveSearch:
    """Runs the stages one after the other; any number of threads may search at once.

    Between two steps there is no more than reading the clock and, where the pool has changed,
    comparing its first k rows: all else (recall, documents, rows of the trace) is done later.
    """

    def __init__(self, stages: Sequence[Stage], k: int, stop_when: int | None = None) -> None:
        self._stages = tuple(stages)
        self._k = k
        self._stop_when = stop_when

    def run(self, question: Question, now_us: Callable[[], int]) -> Search:
        """Search; times are those of ``now_us``, taken at the moment when a change is known."""
        start_us = step_us = now_us()
        pool = Pool()
        shown: tuple[int, ...] = ()
        updates: list[Update] = []
        steps: dict[str, int] = {}
        for stage in self._stages:
            step = unchanged = 0
            for found in stage.steps(question, pool):
                step += 1
                unchanged += 1
                if found is not pool:
                    pool = found
                    top = found.rows[: self._k]
                    if top != shown:
                        shown, unchanged, at_us = top, 0, now_us()
                        updates.append(Update(stage.name, step, step_us, at_us, top))
                if unchanged == self._stop_when:
                    break
                step_us = now_us()
            steps[stage.name] = step
        return Search(tuple(updates), start_us, now_us(), steps)
