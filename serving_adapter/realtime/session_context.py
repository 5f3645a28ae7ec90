"""The context of a session: its settings and its conversation, prefilled as it comes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

from s2l.serving_adapter.realtime.admission import Admission, Overloaded
from s2l.serving_adapter.realtime.conversation import Conversation, ConversationItem
from s2l.serving_adapter.realtime.conversation_prompt import (
    ConversationPrompt,
    OnHeld,
    OnPrefilled,
)
from s2l.serving_adapter.realtime.engine import Engine
from s2l.serving_adapter.realtime.limits import Limits, exceeded
from s2l.serving_adapter.realtime.message_item import REFERENCE, message_item
from s2l.serving_adapter.realtime.prompt_template import PromptTemplate
from s2l.serving_adapter.realtime.session_config import (
    Extension,
    Item,
    RealtimeError,
    SessionConfig,
    not_supported,
)
from s2l.serving_adapter.realtime.streamed_prompt import StreamedPrompt


class SessionContext:
    """Settings and conversation, changed one event at a time.

    From the first item on, the conversation is prefilled early. A response takes the prompt; while
    it answers, changes belong to the next turn, which is prefilled when the answer is there and
    something came after it. Between turns nothing is held in the KV cache but prefixes that may
    be evicted.
    """

    def __init__(
        self, session_id: str, engine: Engine, admission: Admission, limits: Limits, on_held: OnHeld
    ) -> None:
        self.config = SessionConfig()
        self.conversation = Conversation()
        self.answering = False
        """Whether a response that belongs to the conversation is under way."""
        self._session_id = session_id
        self._engine = engine
        self._admission = admission
        self._limits = limits
        self._on_held = on_held
        self._template = PromptTemplate(engine)
        self._prompt: ConversationPrompt | None = None
        self._prompts = 0
        self._queued_changes = 0
        self._lock = asyncio.Lock()

    @property
    def extension(self) -> Extension:
        """What the client asked for beyond the API."""
        return self.config.s2l or Extension()

    @property
    def temperature(self) -> float:
        """The session's temperature; greedy unless asked otherwise."""
        own = self.config.temperature
        return (self.extension.temperature or 0.0) if own is None else own

    @property
    def cache_salt(self) -> str:
        """What keeps this session's prefixes apart from others'; empty for those of all."""
        return self.extension.cache_salt or ""

    @property
    def reports(self) -> bool:
        """Whether the client asked for reports of what is prefilled."""
        return bool(self.extension.report)

    @property
    def begun(self) -> bool:
        """Whether early prefill has begun for the next answer."""
        return self._prompt is not None and self._prompt.begun

    @asynccontextmanager
    async def settled(self) -> AsyncIterator[None]:
        """While it lasts nothing changes, and prefill waits for what is to come."""
        async with self._lock:
            with self._growing():
                yield

    async def configure(self, new: SessionConfig) -> None:
        """Change settings; other instructions begin the prompt anew.

        Raises:
            RealtimeError: they ask for what is not there, or the context is too long with them.
        """
        new.check(self._engine.info)
        async with self.settled():
            config = self.config.updated(new)
            salt = (config.s2l.cache_salt if config.s2l else None) or ""
            if self.begun and salt != self.cache_salt:
                what = "another cache salt while context is being prefilled"
                raise not_supported(what, "session.s2l.cache_salt")
            if config.instructions != self.config.instructions:
                if self._engine_follows:
                    self._count_change()
                await self._adopt(self.conversation.copy(), config, grows="session.instructions")
            self.config = config

    async def add(self, item: Item, after: str | None) -> tuple[ConversationItem, str | None]:
        """Add an item after another one; the item, and the id of the one before it.

        Raises:
            RealtimeError: it is no text, has no place, or does not fit.
            Overloaded: it is the first, and too many sessions wait for KV cache already.
        """
        arrived_s = asyncio.get_running_loop().time()
        made = message_item(item, "item", arrived_s=arrived_s)
        async with self.settled():
            previous = self.conversation.place(made.item_id, after)
            self._check_items(len(self.conversation) + 1, "item")
            self._count_change()
            await self._tokenize(made)
            changed = self.conversation.copy()
            changed.add(made, previous)
            await self._adopt(changed, self.config, grows="item.content", begins=True)
        return made, previous

    async def delete(self, item_id: str) -> None:
        """Take an item out. Raises RealtimeError when there is no such item."""
        async with self.settled():
            changed = self.conversation.copy()
            changed.delete(item_id)
            if self._engine_follows:
                self._count_change()
            await self._adopt(changed, self.config)

    async def view(self, instructions: str | None, items: Sequence[Item] | None) -> Conversation:
        """What a response is to answer: the conversation, or these items and references instead.

        To be called while ``settled``.

        Raises:
            RealtimeError: an item is not text, is not there, or all together do not fit.
        """
        view = self.conversation.copy() if items is None else await self._of(items)
        text = self.config.instructions if instructions is None else instructions
        if not view.speaks and not text:
            raise RealtimeError("empty_conversation", "create an item before response.create")
        roles = view.roles if view.speaks else ()
        view.glue = await self._template.glue(text or "", roles)
        if not self._fits(view):
            raise self._too_long(view, "response")
        return view

    def begin_answer(self, view: Conversation, item: ConversationItem) -> ConversationPrompt:
        """Hand out the prompt, to be answered in the item, which is added to the conversation.

        Raises:
            Overloaded: too many sessions wait for KV cache already.
        """
        prompt = self._next_prompt()
        prompt.follow(view, self.cache_salt, to_the_end=True)
        self._prompt = None
        self._add_answer(item)
        return prompt

    def begin_answer_apart(
        self, view: Conversation, item: ConversationItem | None
    ) -> StreamedPrompt:
        """A prompt of its own, for a response that has its own input or is not added (None).

        Raises:
            Overloaded: too many sessions wait for KV cache already.
        """
        prompt = self._new_prompt(lambda tokens: None)
        prompt.cache_salt = self.cache_salt
        prompt.replace(view.prompt)
        if item is not None:
            self._add_answer(item)
        return prompt

    async def answered(self, item: ConversationItem) -> None:
        """The answer is complete: it is context, and what came meanwhile can be prefilled."""
        async with self._lock:
            self.answering = False
            await self._tokenize(item)
            changed = self.conversation.copy()
            begins = changed.follows(item.item_id)
            try:
                await self._adopt(changed, self.config, begins=begins)
            except (RealtimeError, Overloaded):
                return  # no event to refuse: the client's next one is told

    async def aclose(self) -> None:
        """Abort early prefill and free its KV blocks."""
        if self._prompt is not None:
            await self._prompt.aclose()

    def _growing(self) -> AbstractContextManager[None]:
        return nullcontext() if self.answering else self._next_prompt().changing()

    def _next_prompt(self) -> ConversationPrompt:
        """The prompt that is prefilled early; a new one costs nothing until it is given tokens."""
        if self._prompt is None:
            self._prompt = ConversationPrompt(self._new_prompt, self._note_held)
        return self._prompt

    def _new_prompt(self, on_prefilled: OnPrefilled) -> StreamedPrompt:
        self._prompts += 1
        request_id = f"{self._session_id}-{self._prompts}"
        return StreamedPrompt(
            self._engine, self._admission, request_id=request_id, on_prefilled=on_prefilled
        )

    def _note_held(self, item_ids: list[str], tokens: int) -> None:
        self._queued_changes = 0
        self._on_held(item_ids, tokens)

    async def _adopt(
        self,
        changed: Conversation,
        config: SessionConfig,
        *,
        grows: str | None = None,
        begins: bool = False,
    ) -> None:
        """The conversation is this from now on, with these settings. ``grows`` names what is
        refused if it gets too long by it; ``begins`` is whether early prefill begins if it has not.
        """
        changed.glue = await self._template.glue(config.instructions or "", changed.roles)
        fits = self._fits(changed)
        if grows and not fits:
            raise self._too_long(changed, grows)
        if fits and not self.answering and (begins or self.begun):
            self._next_prompt().follow(changed, self.cache_salt)
        self.conversation = changed

    async def _of(self, items: Sequence[Item]) -> Conversation:
        """A conversation of a response's own input."""
        self._check_items(len(items), "response.input")
        made = []
        for number, item in enumerate(items):
            param = f"response.input[{number}]"
            if item.type == REFERENCE:
                made.append(self._referenced(item, param))
            else:
                made.append(message_item(item, param, arrived_s=0.0))
                await self._tokenize(made[-1])
        return Conversation((), made)

    def _referenced(self, item: Item, param: str) -> ConversationItem:
        if item.id is None or item.id not in self.conversation:
            message = f"there is no item {item.id!r} to refer to"
            raise RealtimeError("invalid_value", message, param=f"{param}.id")
        return replace(self.conversation.get(item.id, "invalid_value"))

    async def _tokenize(self, item: ConversationItem) -> None:
        text = "".join(item.texts)
        item.tokens = tuple(await self._engine.tokenize(text)) if text else ()

    def _add_answer(self, item: ConversationItem) -> None:
        changed = self.conversation.copy()
        changed.add(item, changed.last_id)
        self.conversation = changed
        self.answering = True
        self._queued_changes = 0

    @property
    def _engine_follows(self) -> bool:
        """Whether the engine has, or will have, something to do for a change."""
        return self.begun or self.answering

    def _count_change(self) -> None:
        limit = self._limits.max_queued_changes
        if self._queued_changes >= limit:
            message = f"{limit} changes wait for the engine; wait for it"
            raise exceeded("max_queued_changes", "rate_limit_exceeded", message)
        self._queued_changes += 1

    def _check_items(self, count: int, param: str) -> None:
        limit = self._limits.max_items
        if count > limit:
            message = f"{limit} items are as many as there may be"
            raise exceeded("max_items", "too_many_items", message, param=param)

    def _fits(self, conversation: Conversation) -> bool:
        """Whether there is room for the whole prompt and one generated token."""
        return len(conversation.prompt) < self._engine.info.max_model_len

    def _too_long(self, conversation: Conversation, param: str) -> RealtimeError:
        limit, total = self._engine.info.max_model_len, len(conversation.prompt) + 1
        message = f"the context would be {total} tokens with this and one of an answer; "
        message += f"the limit is {limit}"
        return exceeded("max_model_len", "context_length_exceeded", message, param=param)
