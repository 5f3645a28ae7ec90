"""Shows a replay while it goes on, from a thread: the event loop measures and draws nothing."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rich.live import Live

from s2l.progress import PLAIN_PERIOD_S, console, say
from s2l.replayer.progress import Progress
from s2l.replaying import live_text
from s2l.replaying.json_events import JsonEvents
from s2l.replaying.live_pass import PassMoment, RecentRates, moment

DRAW_S: Final = 0.5
TELL_S: Final = 1.0
SWITCH_S: Final = 0.0005
"""The interpreter changes threads that often while something is measured: the default of 5 ms
would be that much lag in every drawing."""


class LiveView:
    """The passes of a replay: a table on a terminal, lines elsewhere, and events for machines."""

    def __init__(self, progress: Callable[[], Progress], events: JsonEvents | None = None) -> None:
        self._progress = progress
        self._events = events
        self._passes: dict[str, PassMoment] = {}
        self._rates = RecentRates()
        self._told: PassMoment | None = None
        self._line_s = 0.0
        self._lock = threading.Lock()
        self._live = (
            Live(console=console, auto_refresh=False, redirect_stdout=False)
            if console.is_terminal
            else None
        )

    def run(self, over: threading.Event) -> None:
        """Draw until it is over; the last picture is that of the end."""
        period_s = TELL_S if self._live is None else DRAW_S
        while not over.wait(period_s):
            self.look()
        self.look()
        self._end_last()
        if self._live is not None:
            self._live.stop()

    def look(self) -> None:
        """Show how it is now. Beside the thread, this is for the moment between two passes, so
        that the first is seen as it ended."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        at = self._progress()
        if not at.pass_name or at.planned == 0:
            return
        if at.pass_name not in self._passes:
            self._end_last()
            self._rates = RecentRates()
            self._line_s = time.monotonic()
            if self._events is not None:
                self._events.begun(at.pass_name, at.planned)
        self._show(moment(at, self._rates))

    def _end_last(self) -> None:
        """What was seen last of the pass before is how it ended."""
        if self._passes:
            last = list(self._passes.values())[-1]
            # The rates of its last seconds say nothing any more.
            self._show(replace(last, over=True, left_s=None, offered_qps=None, achieved_qps=None))

    def _show(self, now: PassMoment) -> None:
        self._passes[now.name] = now
        if self._live is not None:
            self._live.start()
            self._live.update(live_text.picture(list(self._passes.values()), console), refresh=True)
        if now != self._told:
            self._tell(now)

    def _tell(self, now: PassMoment) -> None:
        """A line now and then, and at the end; an event every time."""
        self._told = now
        if self._events is not None:
            self._events.progress(now)
        if self._live is None and (now.over or time.monotonic() - self._line_s >= PLAIN_PERIOD_S):
            self._line_s = time.monotonic()
            say(live_text.line(now))


@contextmanager
def live_view(
    progress: Callable[[], Progress], events: JsonEvents | None = None
) -> Iterator[LiveView]:
    """A view that is drawn while the block runs; ``progress`` may be asked by any thread."""
    view, over = LiveView(progress, events), threading.Event()
    thread = threading.Thread(target=view.run, args=(over,), name="live-view", daemon=True)
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(min(before_s, SWITCH_S))
    thread.start()
    try:
        yield view
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(before_s)
