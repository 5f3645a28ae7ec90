"""A crew of threads: what workers do, without the processes around them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from s2l.replayer.scale_out.crew import Crew, WorkerLost
from s2l.scale import Scale


class ThreadCrew:
    """Workers in this process; ``lose`` makes one as unreachable as a dead one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._lost: set[int] = set()
        self.objects: list[Any] = []
        self.calls: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return self._workers

    def hire(self, kind: type, *args: object) -> None:
        with ThreadPoolExecutor(self._workers) as threads:
            self.objects = list(threads.map(lambda _: kind(*args), range(self._workers)))

    def call(self, worker: int, method: str, *args: Any, within_s: float | None = None) -> Any:
        if worker in self._lost:
            raise WorkerLost(f"{self.name(worker)} died")
        self.calls.append((worker, method))
        return getattr(self.objects[worker], method)(*args)

    def put(self, value: object) -> Any:
        return value

    def name(self, worker: int) -> str:
        return f"worker {worker} (process 7 on here)"

    def lose(self, worker: int) -> None:
        """Its capture ends, too, as it would with its process."""
        self._lost.add(worker)
        self.objects[worker].stop()


class ElsewhereCrew(ThreadCrew):
    """Workers that do not see our folders."""

    def hire(self, kind: type, *args: object) -> None:
        super().hire(kind, args[0], "another token")


class InThreads(Scale):
    """Workers of this process."""

    @contextmanager
    def crew(self) -> Iterator[Crew]:
        yield ThreadCrew(self.workers)
