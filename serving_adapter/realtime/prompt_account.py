"""What became of one prompt's tokens, over all the requests that it took."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from s2l.serving_adapter.realtime import metrics
from s2l.serving_adapter.realtime.engine import Step
from s2l.serving_adapter.realtime.prompt_run import PromptRun
from s2l.workloads.context import common_prefix


@dataclass(slots=True)
class PromptAccount:
    """Counts tokens. ``past`` is what past requests were handed of the prompt, perhaps changed
    since; ``held_when_asked`` what an open session held when the answer was asked for.

    ``invalidated`` were handed out, and the next request could not reuse them since they changed;
    ``discarded`` were generated after intermediate chunks; ``found`` were in the prefix cache
    before this prompt had put any there, None until the engine said so.
    """

    past: list[int] = field(default_factory=list)
    held_when_asked: int = 0
    invalidated: int = 0
    discarded: int = 0
    found: int | None = None

    def kept(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens were handed to past requests."""
        return common_prefix(self.past, tokens)

    def cached(self, run: PromptRun) -> int:
        """Tokens that were there when the answer was asked for; where a chunk was in the engine
        just then, those of it are not among them."""
        return max(min(run.held_at_end, self.held_when_asked), run.cached or 0)

    def handed_out(self, run: PromptRun, count: int, prompt: list[int]) -> None:
        """The request gets so many tokens of what the prompt is now."""
        if not run.sent and prompt[: len(self.past)] != self.past:
            run.replaces = len(self.past)
        metrics.CHUNKS.inc()
        metrics.PREFILLED.inc(count)

    def took(self, run: PromptRun, step: Step) -> None:
        """The engine did a step of the request."""
        if run.cached is None:
            self._first_step(run, step.cached_tokens)
        if run.answering:
            run.generated += len(step.token_ids)
        else:
            self.discarded += len(step.token_ids)

    def over(self, run: PromptRun) -> None:
        """The request is over, however it ended."""
        if run.cached is not None or len(run.sent) >= len(self.past):
            self.past = run.sent or self.past

    def _first_step(self, run: PromptRun, cached: int) -> None:
        run.cached = cached
        if self.found is None:
            self.found = cached
        lost = max(0, run.replaces - cached)
        self.invalidated += lost
        metrics.REUSED.inc(cached)
        metrics.INVALIDATED.inc(lost)
