"""What an engine's chat template puts before, between and after the turns of a conversation.

Context arrives piece by piece and each piece is tokenised once, so a prompt is put together from
token ids: those of the template's text up to the first turn (with the instructions), then of the
turn's items one by one, then of the text up to the next turn, and so on. Messages of one role that
follow each other are one turn, so all context of one question is one user message.
"""

import uuid
from collections.abc import Sequence
from typing import Final

from s2l.serving_adapter.realtime.engine import Engine, Message
from s2l.serving_adapter.realtime.session_config import RealtimeError

Glue = tuple[tuple[int, ...], ...]
"""Token ids before the first turn, between turns, and after the last one: one more than turns."""

_KEPT: Final = 16
"""Renderings remembered besides the newest: a client that changes its instructions forever must
not fill the memory."""


class PromptTemplate:
    """The template of one engine; each text between turns is rendered and tokenised once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._glue: dict[tuple[str, tuple[str, ...]], Glue] = {}
        self._token_ids: dict[tuple[str, bool], tuple[int, ...]] = {}

    async def glue(self, instructions: str, roles: Sequence[str]) -> Glue:
        """Token ids around the turns of these roles, the last ends where the model answers.

        Raises:
            RealtimeError: the template has no place for such a conversation.
        """
        key = (instructions, tuple(roles))
        if key not in self._glue:
            texts = self._texts(instructions, roles)
            glue = [await self._tokenize(text, start=not i) for i, text in enumerate(texts)]
            self._glue = {key: tuple(glue)} | dict(list(self._glue.items())[:_KEPT])
        return self._glue[key]

    def _texts(self, instructions: str, roles: Sequence[str]) -> list[str]:
        nonce = uuid.uuid4().hex  # no text of a client can contain it
        marks = [f"\x02{nonce}-{i}\x03" for i in range(len(roles))]
        turns = [Message(role, mark) for role, mark in zip(roles, marks, strict=True)]
        system = [Message("system", instructions)] if instructions else []
        try:
            rest = self._engine.render([*system, *turns])
        except Exception as error:  # templates raise errors of their own
            reason = f"the model's chat template refuses it: {error}"
            raise RealtimeError("invalid_value", reason, param="item.role") from None
        texts = []
        for mark in marks:
            text, found, rest = rest.partition(mark)
            if not found:
                reason = f"the model's chat template has no place for the turns {', '.join(roles)}"
                raise RealtimeError("invalid_value", reason, param="item.role")
            texts.append(text)
        return [*texts, rest]

    async def _tokenize(self, text: str, *, start: bool) -> tuple[int, ...]:
        if not text and not start:
            return ()
        if (text, start) not in self._token_ids:
            ids = tuple(await self._engine.tokenize(text, start=start))
            kept = dict(list(self._token_ids.items())[:_KEPT])
            self._token_ids = {(text, start): ids} | kept
        return self._token_ids[text, start]
