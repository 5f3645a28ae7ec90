"""One client of a Realtime server: reads its events, grows its prompt, streams its answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from s2l.serving_adapter.realtime import server_events as out
from s2l.serving_adapter.realtime.admission import Admission, Overloaded
from s2l.serving_adapter.realtime.conversation import Conversation
from s2l.serving_adapter.realtime.engine import Engine
from s2l.serving_adapter.realtime.events import (
    ClientEvent,
    Extension,
    Item,
    ItemCreate,
    ItemDelete,
    RealtimeError,
    ResponseCancel,
    ResponseConfig,
    ResponseCreate,
    SessionConfig,
    SessionUpdate,
    decode_client_event,
    event_head,
)
from s2l.serving_adapter.realtime.prompt_template import PromptTemplate
from s2l.serving_adapter.realtime.streamed_prompt import StreamedPrompt

log = logging.getLogger(__name__)


class Socket(Protocol):
    """A WebSocket, whichever web framework it is of."""

    async def receive(self) -> str | bytes | None:
        """The next frame, None when the client is gone."""

    async def send(self, frame: str) -> None:
        """Send one text frame; a client that is gone is no error."""


class Connection:
    """One session: one conversation and, in this version, one response."""

    def __init__(self, socket: Socket, engine: Engine, admission: Admission) -> None:
        self._socket = socket
        self._engine = engine
        self._config = SessionConfig()
        self._extension = Extension()
        self._id = out.new_id("sess")
        self._conversation_id = out.new_id("conv")
        self._conversation = Conversation()
        self._template: PromptTemplate | None = None
        self._prompt = StreamedPrompt(
            engine, admission, request_id=self._id, on_prefilled=self._on_prefilled
        )
        self._response: asyncio.Task[None] | None = None
        self._reports: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve the client until it is gone, then free all that it held."""
        try:
            await self._send(out.event("session.created", session=self._session()))
            while (frame := await self._socket.receive()) is not None:
                await self._answer(frame)
        finally:
            if self._response is not None:
                self._response.cancel()
                await asyncio.wait([self._response])
            await self._prompt.aclose()

    async def _answer(self, frame: str | bytes) -> None:
        try:
            event = decode_client_event(frame)
            await self._handle(event)
        except RealtimeError as problem:
            await self._send(out.error(problem, event_head(frame).event_id))
        except Overloaded as problem:
            refusal = RealtimeError("rate_limit_exceeded", str(problem))
            await self._send(out.error(refusal, event_head(frame).event_id))

    async def _handle(self, event: ClientEvent) -> None:
        handlers: dict[type, Callable[..., Awaitable[None]]] = {
            SessionUpdate: self._update_session,
            ItemCreate: self._create_item,
            ItemDelete: self._delete_item,
            ResponseCreate: self._create_response,
            ResponseCancel: self._cancel_response,
        }
        await handlers[type(event)](event)

    async def _update_session(self, event: SessionUpdate) -> None:
        new = event.session
        if new.output_modalities not in (None, ["text"]):
            raise _unsupported("output_modalities other than ['text']", "session.output_modalities")
        if new.model not in (None, self._engine.info.model):
            message = f"this server serves {self._engine.info.model!r}, not {new.model!r}"
            raise RealtimeError("model_not_found", message, param="session.model")
        if self._template and new.instructions not in (None, self._config.instructions):
            raise _unsupported("changing instructions after the first item", "session.instructions")
        if self._template and new.s2l and new.s2l.cache_salt != self._extension.cache_salt:
            raise _unsupported("changing the cache salt after the first item", "session.s2l")
        changes = {f: v for f in new.__struct_fields__ if (v := getattr(new, f)) is not None}
        self._config = msgspec.structs.replace(self._config, **changes)
        self._extension = self._config.s2l or self._extension
        await self._send(out.event("session.updated", session=self._session()))

    async def _create_item(self, event: ItemCreate) -> None:
        if self._response is not None:
            raise _unsupported("items after response.create", "item")
        text = _text_of(event.item)
        item_id = event.item.id or out.new_id("item")
        previous = self._conversation.check_new(item_id, event.previous_item_id)
        with self._prompt.changing():
            await self._begin_conversation()
            tokens = await self._engine.tokenize(text)
            self._check_length(len(tokens))
            self._conversation.insert(item_id, tokens, previous)
            self._prompt.replace(self._conversation.tokens)
        item = out.user_item(item_id, text)
        for kind in ("conversation.item.added", "conversation.item.done"):
            await self._send(out.event(kind, item=item, previous_item_id=previous))

    async def _begin_conversation(self) -> None:
        """With the first item the instructions are settled: they stand before it."""
        if self._template is None:
            template = PromptTemplate.of(self._engine, self._config.instructions or "")
            self._conversation.before = tuple(
                await self._engine.tokenize(template.before, start=True)
            )
            self._template = template
            self._prompt.cache_salt = self._extension.cache_salt

    def _check_length(self, more: int) -> None:
        limit = self._engine.info.max_model_len
        total = len(self._conversation.tokens) + more + self._reserve
        if total > limit:
            message = f"the context would be {total} tokens with this item; the limit is {limit}"
            raise RealtimeError("context_length_exceeded", message, param="item.content")

    @property
    def _reserve(self) -> int:
        """Room kept for the end of the template and one generated token."""
        return 1 + (len(self._template.after.encode()) if self._template else 0)

    async def _delete_item(self, event: ItemDelete) -> None:
        if self._response is not None:
            raise _unsupported("items after response.create", "item")
        with self._prompt.changing():
            self._conversation.delete(event.item_id)
            self._prompt.replace(self._conversation.tokens)
        await self._send(out.event("conversation.item.deleted", item_id=event.item_id))

    async def _create_response(self, event: ResponseCreate) -> None:
        if self._response is not None:
            raise _unsupported("a second response in one session", "type")
        config = event.response or ResponseConfig()
        if config.conversation not in (None, "auto") or config.input or config.instructions:
            raise _unsupported("input, instructions or conversation of a response", "response")
        if config.output_modalities not in (None, ["text"]):
            raise _unsupported("output_modalities other than ['text']", "response")
        if self._template is None or not self._conversation:
            raise RealtimeError("empty_conversation", "create an item before response.create")
        limit = self._max_output_tokens(config)
        with self._prompt.changing():
            after = self._template.after
            self._prompt.extend(await self._engine.tokenize(after) if after else [])
        limit = min(limit, self._engine.info.max_model_len - self._prompt.tokens)
        events = out.ResponseEvents(self._conversation_id, limit)
        self._response = asyncio.create_task(self._respond(events, limit))
        await asyncio.sleep(0)  # let it begin: a task cancelled before that says nothing

    def _max_output_tokens(self, config: ResponseConfig) -> int:
        asked = config.max_output_tokens or self._config.max_output_tokens or "inf"
        if asked == "inf":
            return self._engine.info.max_model_len
        if asked < 1:
            raise RealtimeError("invalid_value", "max_output_tokens is 1 or more, or 'inf'")
        return asked

    async def _cancel_response(self, event: ResponseCancel) -> None:
        if self._response is None or self._response.done():
            raise RealtimeError("response_cancel_not_active", "no response is in progress")
        self._response.cancel()

    async def _respond(self, events: out.ResponseEvents, limit: int) -> None:
        """Stream one answer; whatever ends it, ``response.done`` says how."""
        decoder = self._engine.decoder()
        text, n_output, n_unsent, cached = "", 0, 0, self._prompt.prefilled_tokens
        status, reason, message = "completed", None, ""
        try:
            for event in events.opening(self._conversation.last_id):
                await self._send(event)
            steps = self._prompt.answer(limit, self._extension.temperature)
            async for step in steps:
                if report := self._prefilled_report(self._prompt.tokens):
                    await self._send(report)
                n_output += len(step.token_ids)
                n_unsent += len(step.token_ids)
                if delta := decoder.push(step.token_ids):
                    text += delta
                    await self._send_delta(events.delta(delta), n_unsent)
                    n_unsent = 0
                if step.finish_reason == "length":
                    status, reason = "incomplete", "max_output_tokens"
        except asyncio.CancelledError:
            status, reason = "cancelled", "client_cancelled"
            await self._prompt.aclose()
        except Exception as error:  # the engine's own failures are the client's to know
            log.exception("response failed")
            status, reason, message = "failed", "engine_error", str(error) or repr(error)
        cached = max(cached, self._prompt.prefix_cached_tokens)
        count = out.TokenCount(
            self._prompt.tokens,
            cached,
            n_output,
            self._prompt.invalidated_tokens if self._extension.report else None,
        )
        for event in events.closing(text, status, reason, count, message):
            await self._send(event)

    async def _send_delta(self, delta: out.Event, tokens: int) -> None:
        if self._extension.report:
            delta["s2l"] = {"tokens": tokens}
        await self._send(delta)

    def _on_prefilled(self, tokens: int) -> None:
        if report := self._prefilled_report(tokens):
            task = asyncio.create_task(self._send(report))
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    def _prefilled_report(self, tokens: int) -> out.Event | None:
        """Tells a client that asked for it which items the engine holds by now."""
        held = self._conversation.report_held(tokens)
        if not self._extension.report or not held:
            return None
        return out.event("s2l.prefilled", item_ids=held, tokens=tokens)

    def _session(self) -> out.Event:
        return out.session_object(self._id, self._config, self._engine.info)

    async def _send(self, event: out.Event) -> None:
        await self._socket.send(msgspec.json.encode(event).decode())


def _unsupported(what: str, param: str) -> RealtimeError:
    return RealtimeError("not_supported", f"not supported yet: {what}", param=param)


def _text_of(item: Item) -> str:
    if item.type != "message" or item.role != "user":
        raise _unsupported(f"items of type {item.type!r} and role {item.role!r}", "item")
    parts = [part.text for part in item.content if part.type == "input_text"]
    if not parts or len(parts) != len(item.content) or None in parts:
        raise RealtimeError(
            "invalid_value", "content must be input_text parts with text", param="item.content"
        )
    return "".join(part for part in parts if part)
