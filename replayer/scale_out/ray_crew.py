"""Workers as actors of Ray: processes of this machine, or of a cluster."""

import logging
import os
import re
import socket
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any, Final

from s2l.replayer.scale_out.crew import WorkerLost

INSTALL: Final = "Ray is not installed: pip install 's2l[ray]'"
CALLS_AT_ONCE: Final = 4
"""A worker is asked how it goes while it is asked to stop."""
REACH_S: Final = 5.0
"""How long a cluster may take to accept a connection; Ray itself goes on trying for minutes."""
START_S: Final = 120.0
"""How long a worker may take to start; where others take the cluster's CPUs it waits for one."""
_HOST_PORT: Final = re.compile(r"(?:ray://)?\[?([^\[\]/]+?)\]?:(\d+)")


class RayMissing(Exception):
    """Ray is not installed, or its cluster cannot be reached or has no room; one line."""


class RayCrew:
    """A crew on Ray. Used as a context manager; leaving it ends the workers."""

    def __init__(self, workers: int, address: str | None = None) -> None:
        """``address`` is that of a cluster; None: processes of this machine.

        What the workers write to their standard error comes out of ours, with their names; what
        Ray says of them, out of our standard output.

        Raises:
            RayMissing: it is not installed, nothing answers at the address, or the cluster is too
                small.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise RayMissing(INSTALL) from None
        if address is not None:
            _check_reachable(address)
        logging.getLogger("ray").setLevel(logging.ERROR)
        self._ray: Any = ray
        self._address = address
        self._workers = workers
        self._actors: list[Any] = []
        self._names: list[str] = []
        with ExitStack() as stack:
            own = {} if address is not None else _own(workers, stack)
            stack.callback(ray.shutdown)
            self._join(own or {"address": address})
            self._check_room()
            self._stack = stack.pop_all()

    def __enter__(self) -> "RayCrew":
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return self._workers

    def hire(self, kind: type, *args: object) -> None:
        for old in self._actors:
            self._ray.kill(old)
        # "SPREAD": over the machines of a cluster, as one has only so many ports and cores.
        options = {"num_cpus": 1, "max_concurrency": CALLS_AT_ONCE, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(**options)(kind)
        self._actors = [actor.remote(*args) for _ in range(self._workers)]
        self._names = [f"worker {n}" for n in range(self._workers)]
        for worker in range(self._workers):
            host, pid, _ = self.call(worker, "whereabouts", within_s=START_S)
            self._names[worker] = f"worker {worker} (process {pid} on {host})"

    def call(self, worker: int, method: str, *args: Any, within_s: float | None = None) -> Any:
        actor, errors = self._actors[worker], self._ray.exceptions
        try:
            return self._ray.get(getattr(actor, method).remote(*args), timeout=within_s)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.GetTimeoutError:
            text = f"{self.name(worker)} has not answered for {within_s:g} s"
        except errors.RayError:
            text = f"{self.name(worker)} died"
        self._ray.kill(actor)  # where it only cannot be reached, too
        raise WorkerLost(text)

    def put(self, value: object) -> Any:
        return self._ray.put(value)

    def name(self, worker: int) -> str:
        return self._names[worker]

    def _join(self, where: dict[str, Any]) -> None:
        try:
            self._ray.init(**where, log_to_driver=True, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            text = f"{self._address or 'Ray'}: cannot be reached: {error}"
            raise RayMissing(text + (_token_hint() if self._address else "")) from None

    def _check_room(self) -> None:
        cpus = self._ray.cluster_resources().get("CPU", 0)
        if cpus < self._workers:
            raise RayMissing(
                f"{self._address}: the cluster has {cpus:g} CPUs; a worker takes one, so that "
                f"{self._workers} workers are too many"
            )


def _own(workers: int, stack: ExitStack) -> dict[str, Any]:
    """Settings of a Ray of this process's own, whose files go with it."""
    folder = TemporaryDirectory(prefix="s2l-ray-", ignore_cleanup_errors=True)
    # "local": without it a cluster that was started on this machine would be joined.
    return {
        "address": "local",
        "num_cpus": workers,
        "include_dashboard": False,
        "_temp_dir": stack.enter_context(folder),
    }


def _token_hint() -> str:
    """Ray sends no token to an address that was named, unless it is told to."""
    if "RAY_AUTH_MODE" in os.environ:
        return ""
    return "; if the cluster asks for a token: RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN"


def _check_reachable(address: str) -> None:
    """Ask whether anything listens there; a name such as ``auto`` is left to Ray.

    Raises:
        RayMissing: nothing does.
    """
    found = _HOST_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        raise RayMissing(f"{address}: no Ray cluster can be reached there: {error}") from None
