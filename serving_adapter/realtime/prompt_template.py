"""Splits a chat template into what stands before and after the user's message.

Context arrives piece by piece and each piece is tokenised once, so the prompt is put together from
tokens: those of the text before the user's message (with the instructions), then of each piece,
then of the text after it. All pieces of one question are one user message.
"""

from dataclasses import dataclass

from s2l.serving_adapter.realtime.engine import Engine

_MARK = "\x02s2l-user-message\x03"


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """The text around the user's message."""

    before: str
    after: str

    @classmethod
    def of(cls, engine: Engine, instructions: str) -> "PromptTemplate":
        """The engine's template with these instructions.

        Raises:
            ValueError: the template does not show the user's message as it is, exactly once.
        """
        parts = engine.render(instructions, _MARK).split(_MARK)
        if len(parts) != 2:
            raise ValueError("this model's chat template does not repeat the user's text as it is")
        return cls(*parts)
