"""The processes that send, as the one that plans sees them."""

from typing import Any, Final, Protocol

ANSWER_S: Final = 15.0
"""A worker that says nothing for so long while it sends is taken for dead: a run is to end."""


class WorkerLost(Exception):
    """A worker has died; its text names it."""


class Crew(Protocol):
    """So many workers, each an object in a process of its own. Calls block and may be made from
    many threads; a worker answers several at a time."""

    def __len__(self) -> int: ...

    def hire(self, kind: type, *args: object) -> None:
        """Make a ``kind(*args)`` in each process; it tells its ``whereabouts()``: host, process
        id and boot id.

        Raises:
            WorkerLost: one died at once, as where making it raises.
        """

    def call(self, worker: int, method: str, *args: Any, within_s: float | None = None) -> Any:
        """Call a method of one of them. Raises what the method raises, and WorkerLost where it has
        died or did not answer in time: it sends nothing more."""

    def put(self, value: object) -> Any:
        """Hand a value to all of them once; what comes back stands for it in ``call``."""

    def name(self, worker: int) -> str:
        """Which process on which machine it is."""
