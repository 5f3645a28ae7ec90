"""Who sends a pass: this process, or many of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from s2l.replayer.garbage import settle
from s2l.replayer.open_files import files_left, raise_limit, sockets_needed
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.pass_runner import PassRunner, Sink
from s2l.replayer.passes import Pass, prepare
from s2l.replayer.plan import Plan
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import Finding
from s2l.serving_adapter.base import PreparedRequest, ServingAdapter

LEAD_US: Final = 200_000
"""A pass starts this long after its requests are encoded, so that none is late from the start."""
AHEAD: Final = 1.5
"""Connections are opened ahead for answers that take so many times what warm-up's took."""


class Sender(Protocol):
    """One pass under way."""

    @property
    def todo(self) -> Pass: ...

    @property
    def start_us(self) -> int: ...

    @property
    def closed_loop(self) -> bool: ...

    @property
    def started(self) -> int: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def server_gone(self) -> bool: ...

    async def run(self) -> None:
        """Send to the end; cancelling it stops at once. All that was started is in the sink."""

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""

    def stop(self) -> None:
        """End at once."""

    def unsent(self) -> Iterator[RequestRecord]:
        """Requests that were never started."""


class Senders(Protocol):
    """Makes the senders of a run, one pass after the other. ``lead_us`` is how long before its
    start a pass is handed to them; ``answer_s`` how long an answer takes, by which connections
    are opened ahead."""

    lead_us: int
    answer_s: float

    async def prepare(self, plan: Plan, delivery: str, answer_at: str | None) -> None:
        """Encode the requests of the next pass."""

    def sender(
        self,
        todo: Pass,
        sink: Sink,
        pacer: Pacer,
        *,
        start_us: int,
        cancel_us: npt.NDArray[np.int64] | None,
    ) -> Sender:
        """The sender of the pass that was prepared."""

    def findings(self) -> list[Finding]:
        """What is to be said of the sending, once it is over."""


class LocalSenders:
    """Sends from the event loop of this process."""

    lead_us = LEAD_US

    def __init__(
        self,
        adapter: ServingAdapter,
        options: ReplayOptions,
        on_end: Callable[[RequestRecord], None] | None = None,
    ) -> None:
        self._adapter, self._options, self._on_end = adapter, options, on_end
        self.answer_s = 0.0
        self._requests: Sequence[PreparedRequest] = ()

    async def prepare(self, plan: Plan, delivery: str, answer_at: str | None) -> None:
        """Encode the requests of the next pass, and open what they will need."""
        options = self._options
        self._requests = prepare(plan, delivery, answer_at, self._adapter, options.max_tokens)
        answer_us = round(self.answer_s * AHEAD * 1e6)
        sockets, left = sockets_needed(plan, options, answer_us), files_left(raise_limit())
        await self._adapter.ready(sockets if left is None else min(sockets, left))
        settle()

    def sender(
        self,
        todo: Pass,
        sink: Sink,
        pacer: Pacer,
        *,
        start_us: int,
        cancel_us: npt.NDArray[np.int64] | None,
    ) -> Sender:
        """See ``Senders``."""
        return PassRunner(
            todo,
            self._requests,
            pacer,
            sink,
            self._options,
            start_us=start_us,
            cancel_us=cancel_us,
            on_end=self._on_end,
        )

    def findings(self) -> list[Finding]:
        """Nothing: what there is to say of one client, its samples do."""
        return []
