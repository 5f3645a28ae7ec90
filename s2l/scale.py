"""``--workers`` and ``--ray``: on how many processes, and whose, a capture runs."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from s2l.drain import interrupt_deferred
from s2l.progress import say
from s2l.replayer.scale_out.crew import Crew
from s2l.workloads.plural import counted

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_OPTIONS: Final = (
    click.option(
        "--workers",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Processes that share the work and its limits; with --ray, those of a cluster.",
    ),
    click.option(
        "--ray",
        "ray_address",
        metavar="ADDRESS",
        help="Of a Ray cluster, on which the workers are to run; this program is installed there.",
    ),
)


def scale_options(command: F) -> F:
    """Give a command ``workers`` and ``ray_address``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Scale:
    """So many workers; ``address`` is that of their cluster, None: processes of this machine."""

    workers: int = 1
    address: str | None = None

    def check_limit(self, option: str, limit: int) -> None:
        """Raises click.UsageError for a limit that leaves a worker nothing."""
        if limit < self.workers:
            raise click.UsageError(
                f"--workers {self.workers} take one each at least: more than {option} allows, "
                f"which is {limit}"
            )

    @property
    def is_one(self) -> bool:
        """Whether there is nothing to share: this process does it all."""
        return self.workers == 1 and self.address is None

    def share_of(self, total: int, worker: int) -> int:
        """A limit of all workers together, shared out."""
        return total // self.workers + (worker < total % self.workers)

    def shares(self, items: Sequence[T]) -> list[tuple[T, ...]]:
        """To each worker every n-th."""
        return [tuple(items[worker :: self.workers]) for worker in range(self.workers)]

    @contextmanager
    def crew(self) -> Iterator[Crew]:
        """The processes, which end with the block.

        Raises:
            RayMissing: Ray is not installed, or its cluster cannot be reached.
        """
        from s2l.replayer.scale_out.ray_crew import RayCrew

        where = f"at {self.address}" if self.address else "on this machine"
        say(f"starting {counted(self.workers, 'worker')} {where} (Ray)")
        # Standard output is for results: what Ray says of its workers goes to standard error.
        with redirect_stdout(sys.stderr), ExitStack() as stack:
            with interrupt_deferred("Ray has started"):  # half started, it cannot be stopped
                crew = stack.enter_context(RayCrew(self.workers, self.address))
            yield crew


@contextmanager
def crew_of(given: Mapping[str, Any]) -> Iterator[Crew | None]:
    """The crew that a command's options ask for; None where this process does it all.

    Raises:
        RayMissing: Ray is not installed, or its cluster cannot be reached or has no room.
        click.UsageError: a limit leaves a worker nothing.
    """
    scale = Scale(given["workers"], given["ray_address"])
    if scale.is_one:
        yield None
        return
    for option in ("concurrency", "max_concurrency"):
        if (limit := given.get(option)) is not None:
            scale.check_limit(f"--{option.replace('_', '-')}", limit)
    with scale.crew() as crew:
        yield crew
