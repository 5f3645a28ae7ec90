"""Open files: every request under way holds a socket, and the system has a limit on them."""

import resource
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt
import psutil

from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import Plan, PlanError

SPARE: Final = 16
"""Files that a run needs for itself."""


def raise_limit() -> int | None:
    """Raise the limit on open files as far as the system lets us; what it is then."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def files_left(limit: int | None) -> int | None:
    """How many more may be opened; None where there is no limit."""
    return None if limit is None else max(0, limit - psutil.Process().num_fds() - SPARE)


def check_open_files(needed: int, limit: int | None) -> None:
    """Refuse a plan that must run out of files.

    Raises:
        PlanError: it needs more than the limit.
    """
    used = psutil.Process().num_fds() + SPARE if limit is not None else 0
    if limit is not None and needed + used > limit:
        raise PlanError(
            f"up to {needed} requests are under way at once, and only {limit} files may be open "
            f"({used} are taken); raise the limit (ulimit -n {needed + used}), lower the rate, or "
            f"cap with --max-concurrency {max(1, limit - used)}"
        )


def most_at_once(starts_us: npt.NDArray[np.int64], ends_us: npt.NDArray[np.int64]) -> int:
    """How many intervals overlap at most; one that ends when another starts does not."""
    times = np.concatenate([starts_us, ends_us])
    changes = np.concatenate([np.ones(len(starts_us), int), -np.ones(len(ends_us), int)])
    order = np.lexsort((changes, times))
    return int(np.cumsum(changes[order]).max(initial=0))


def sockets_needed(plan: Plan, options: ReplayOptions, answer_us: int = 0) -> int:
    """Sockets that a plan holds at once: a request holds one from its start to its context's due
    time at least, in both deliveries, and ``answer_us`` longer."""
    return sockets_at_once(plan.starts_us, plan.dues_us() + answer_us, options)


def sockets_at_once(
    starts_us: npt.NDArray[np.int64], ends_us: npt.NDArray[np.int64], options: ReplayOptions
) -> int:
    """Sockets that requests hold at once, within the limits of the options."""
    if options.concurrency is not None:
        return min(options.concurrency, len(starts_us))
    at_once = most_at_once(starts_us, ends_us)
    return min(at_once, options.max_concurrency or at_once)
