"""The prompts of one engine, by what each of them waits for."""

from dataclasses import dataclass, field

from s2l.serving_adapter.realtime.claim import Claim, Leave


@dataclass(slots=True)
class Claims:
    """All prompts that are not over. ``complete`` and ``early`` ones wait for leave, the complete
    ones in the order in which they became so; ``idle`` ones hold a session of which nothing is in
    the engine."""

    everyone: set[Claim] = field(default_factory=set)
    complete: dict[Claim, None] = field(default_factory=dict)
    early: dict[Claim, None] = field(default_factory=dict)
    idle: dict[Claim, None] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Prompts that wait for leave."""
        return len(self.complete) + len(self.early)

    def add(self, claim: Claim) -> None:
        """A prompt that does not wait for anything yet."""
        self.everyone.add(claim)

    def remove(self, claim: Claim) -> None:
        """The prompt is over."""
        self.everyone.discard(claim)
        self.complete.pop(claim, None)

    def queue(self, claim: Claim) -> None:
        """It waits for leave; one that became complete keeps its place from then on."""
        assert claim.ask is not None
        if claim.ask.answer_tokens is None:
            self.early[claim] = None
        else:
            self.early.pop(claim, None)
            self.complete.setdefault(claim)

    def give(self, claim: Claim, leave: Leave, now_s: float) -> None:
        """It has leave, and waits for nothing."""
        for queue in (self.idle, self.early, self.complete):
            queue.pop(claim, None)
        claim.ask, claim.leave = None, leave
        claim.moved_s = now_s
        claim.cold = False
        claim.wake()
