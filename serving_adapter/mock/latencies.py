"""How long the mock takes, as exact arithmetic."""

from dataclasses import dataclass
from typing import Final

NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Latencies:
    """The first token of a prompt with n tokens left to prefill comes after
    ``overhead_s + n / prefill_tokens_per_s``, or after ``ttft_s`` whatever the prompt where that is
    given, plus up to ``ttft_jitter_s``; each further token ``tpot_s`` after the one before."""

    prefill_tokens_per_s: float = 10_000.0
    overhead_s: float = 0.01
    tpot_s: float = 0.01
    ttft_s: float | None = None
    ttft_jitter_s: float = 0.0

    def prefill_s(self, tokens: int) -> float:
        """Seconds until the first token after that many tokens, without jitter."""
        if self.ttft_s is not None:
            return self.ttft_s
        return self.overhead_s + tokens / self.prefill_tokens_per_s

    def chunk_s(self, tokens: int) -> float:
        """Seconds to prefill a chunk that is not the last. With a constant ``ttft_s`` nothing, so
        that the first token comes that long after the question."""
        return 0.0 if self.ttft_s is not None else self.prefill_s(tokens)

    def ttft_ns(self, tokens: int, uniform: float = 0.0) -> int:
        """Nanoseconds to the first token; ``uniform`` in [0, 1) draws the jitter."""
        return round((self.prefill_s(tokens) + self.ttft_jitter_s * uniform) * NS)

    def prefilled_after(self, elapsed_ns: int) -> int:
        """Tokens prefilled by so long after the start, where the prefill was broken off."""
        if self.ttft_s is not None:
            return 0
        return max(0, int((elapsed_ns / NS - self.overhead_s) * self.prefill_tokens_per_s))
