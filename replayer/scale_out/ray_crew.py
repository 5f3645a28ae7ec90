"""Workers as actors of Ray: processes of this machine, or of a cluster."""

import logging
import os
import re
import socket
from typing import Any, Final

from s2l.replayer.scale_out.crew import WorkerLost

INSTALL: Final = "Ray is not installed: pip install 's2l[ray]'"
CALLS_AT_ONCE: Final = 4
"""A worker is asked how it goes while it is asked to stop."""


ANSWER_S: Final = 5.0
"""How long a cluster may take to accept a connection; Ray itself goes on trying for minutes."""
_HOST_PORT: Final = re.compile(r"(?:ray://)?\[?([^\[\]/]+?)\]?:(\d+)")


class RayMissing(Exception):
    """Ray is not installed, or its cluster cannot be reached; one line."""


class RayCrew:
    """A crew on Ray. Used as a context manager; leaving it ends the workers."""

    def __init__(self, workers: int, address: str | None = None) -> None:
        """``address`` is that of a cluster; None: processes of this machine.

        Raises:
            RayMissing: it is not installed, or nothing answers at the address.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise RayMissing(INSTALL) from None
        if address is not None:
            _check_reachable(address)
        self._ray: Any = ray
        self._workers = workers
        self._actors: list[Any] = []
        self._names: list[str] = []
        # "local": without it a cluster that was started on this machine would be joined.
        own: dict[str, Any] = {"address": "local", "num_cpus": workers, "include_dashboard": False}
        try:
            ray.init(
                **({"address": address} if address else own),
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RayMissing(f"{address or 'Ray'}: cannot be reached: {error}") from None

    def __enter__(self) -> "RayCrew":
        return self

    def __exit__(self, *exc: object) -> None:
        self._ray.shutdown()

    def __len__(self) -> int:
        return self._workers

    def hire(self, kind: type, *args: object) -> None:
        for old in self._actors:
            self._ray.kill(old)
        actor = self._ray.remote(num_cpus=1, max_concurrency=CALLS_AT_ONCE)(kind)
        self._actors = [actor.remote(*args) for _ in range(self._workers)]
        self._names = [f"worker {n}" for n in range(self._workers)]
        for worker in range(self._workers):
            host, pid, _ = self.call(worker, "whereabouts")
            self._names[worker] = f"worker {worker} (process {pid} on {host})"

    def call(self, worker: int, method: str, *args: Any) -> Any:
        try:
            return self._ray.get(getattr(self._actors[worker], method).remote(*args))
        except self._ray.exceptions.RayActorError:
            raise WorkerLost(f"{self.name(worker)} died") from None
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def put(self, value: object) -> Any:
        return self._ray.put(value)

    def name(self, worker: int) -> str:
        return self._names[worker]


def _check_reachable(address: str) -> None:
    """Ask whether anything listens there; a name such as ``auto`` is left to Ray.

    Raises:
        RayMissing: nothing does.
    """
    found = _HOST_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise RayMissing(f"{address}: no Ray cluster can be reached there: {error}") from None
