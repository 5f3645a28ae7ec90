"""What the engine has to prefill, for prompts that are complete and for those that are not."""

from s2l.serving_adapter.realtime.claim import Claim, Kind, Leave
from s2l.serving_adapter.realtime.early_gate import Gate


class EngineWork:
    """Counts what was handed out and is not done. ``urgent`` prompts are complete and have no token
    yet."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.urgent = 0
        self._answer_tokens = 0

    def early_room(self) -> int:
        """Tokens of early prefill that may be handed out now."""
        return self._gate.room(self.urgent > 0)

    def takes_early(self) -> bool:
        """Whether no complete prompt waits for a token, and there is room for early prefill."""
        return not self.urgent and self._gate.room(False) > 0

    def busy(self) -> bool:
        """Whether the engine has enough to do for complete prompts."""
        return self._gate.busy(self._answer_tokens)

    def set_urgent(self, claim: Claim, urgent: bool) -> None:
        """Whether the claim's prompt waits for its first token."""
        self.urgent += urgent - claim.urgent
        claim.urgent = urgent

    def started(self, claim: Claim, leave: Leave) -> None:
        """The claim may hand out what it has leave for."""
        if leave.kind is Kind.ANSWER:
            claim.answer_tokens = leave.tokens
            self._answer_tokens += leave.tokens
        else:
            self._gate.started(leave.tokens)

    def ended(self, claim: Claim, leave: Leave, seconds: float | None = None) -> None:
        """It is done after so long, or aborted (None)."""
        self.answer_prefilled(claim)
        if leave.kind is not Kind.ANSWER:
            self._gate.ended(leave.tokens, seconds)

    def answer_prefilled(self, claim: Claim) -> None:
        """Of a complete prompt, nothing is left to prefill."""
        self._answer_tokens -= claim.answer_tokens
        claim.answer_tokens = 0
