"""All that a run counts while it goes on: a tally for each pass, and one for the client."""

from typing import Final

from s2l.replayer.circumstances import Circumstances
from s2l.replayer.monitor import ClientSample
from s2l.replayer.passes import Pass
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import Validity
from s2l.replayer.tally import ClientTally, PassTally
from s2l.replayer.validity import judge

ANSWERS: Final = 32
"""So many answers of a run have their tokens counted twice."""


class Ledger:
    """Tallies by pass. ``add`` and ``add_sample`` are called by one thread only."""

    def __init__(self, passes: list[Pass]) -> None:
        self.tallies = {
            (p.delivery, p.answer_at): PassTally(p.name, p.delivery, planned=len(p)) for p in passes
        }
        self.clients: dict[int | None, ClientTally] = {}
        self.uncounted = 0
        """Complete answers of which the server did not say how many tokens they are."""
        self.answers: list[tuple[str, int]] = []
        """A few answers that were not ended by a token without text, and their tokens by usage."""

    def of(self, todo: Pass) -> PassTally:
        """The tally of a pass."""
        return self.tallies[todo.delivery, todo.answer_at]

    def add(self, record: RequestRecord) -> None:
        """Count a finished request."""
        self.tallies[record.delivery, record.answer_at].add(record)
        if record.succeeded and (record.usage is None or record.usage.output_tokens is None):
            self.uncounted += 1
        if len(self.answers) < ANSWERS and record.finish_reason == "length" and record.usage:
            usage = record.usage
            if usage.output_tokens and not usage.reasoning_tokens:
                self.answers.append(("".join(record.texts), usage.output_tokens))

    def add_sample(self, sample: ClientSample) -> None:
        """Count a sample of the client."""
        self.clients.setdefault(sample.worker, ClientTally()).add(sample)

    def judged(self, known: Circumstances) -> Validity:
        """The verdict on what was counted so far."""
        return judge(list(self.tallies.values()), list(self.clients.values()), known)
