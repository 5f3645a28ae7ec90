"""One session of a Realtime server: does what client events ask for, and answers them."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from s2l.serving_adapter.realtime import events as asked
from s2l.serving_adapter.realtime import server_events as out
from s2l.serving_adapter.realtime.admission import Admission, Overloaded
from s2l.serving_adapter.realtime.engine import Engine
from s2l.serving_adapter.realtime.limits import Limits, hit
from s2l.serving_adapter.realtime.metrics import SESSIONS
from s2l.serving_adapter.realtime.response import Put
from s2l.serving_adapter.realtime.responses import Responses
from s2l.serving_adapter.realtime.session_config import (
    RealtimeError,
    ResponseConfig,
    not_supported,
)
from s2l.serving_adapter.realtime.session_context import SessionContext


class ServerSession:
    """Settings, conversation and responses of one client, who is told by ``put``."""

    def __init__(self, put: Put, engine: Engine, admission: Admission, limits: Limits) -> None:
        self._id = out.new_id("sess")
        self._put = put
        self._engine = engine
        self._prefill = admission.prefill
        self._expires_at = int(time.time() + limits.max_session_s)
        self._context = SessionContext(self._id, engine, admission, limits, self._on_held)
        self._responses = Responses(self._context, put, engine, admission, limits, self._note_state)
        self._answered = False
        self._state = "open"
        SESSIONS.labels(self._state).inc()

    @property
    def answering(self) -> bool:
        """Whether any response is under way."""
        return self._responses.active > 0

    def begin(self) -> None:
        """Say what this is."""
        self._put(out.event("session.created", session=self._session()))

    async def handle(self, event: asked.ClientEvent) -> None:
        """Do what the event asks for and tell it.

        Raises:
            RealtimeError: it cannot be done.
        """
        handlers: dict[type, Callable[[Any], Awaitable[None]]] = {
            asked.SessionUpdate: self._update,
            asked.ItemCreate: self._create_item,
            asked.ItemDelete: self._delete_item,
            asked.ItemRetrieve: self._retrieve_item,
            asked.ItemTruncate: self._truncate_item,
            asked.ResponseCreate: self._create_response,
            asked.ResponseCancel: self._cancel_response,
        }
        try:
            await handlers.get(type(event), _refuse_audio)(event)
        except Overloaded as problem:
            hit("kv_cache")
            kind = "rate_limit_error"
            raise RealtimeError("rate_limit_exceeded", str(problem), kind=kind) from None
        finally:
            self._note_state()

    async def aclose(self) -> None:
        """Abort all that runs and free the KV blocks."""
        try:
            await self._responses.aclose()
            await self._context.aclose()
        finally:
            SESSIONS.labels(self._state).dec()

    async def _update(self, event: asked.SessionUpdate) -> None:
        await self._context.configure(event.session)
        self._put(out.event("session.updated", session=self._session()))

    async def _create_item(self, event: asked.ItemCreate) -> None:
        made, previous = await self._context.add(event.item, event.previous_item_id)
        item = out.item_object(made)
        for kind in ("conversation.item.added", "conversation.item.done"):
            self._put(out.event(kind, item=item, previous_item_id=previous))

    async def _delete_item(self, event: asked.ItemDelete) -> None:
        await self._context.delete(event.item_id)
        self._put(out.event("conversation.item.deleted", item_id=event.item_id))

    async def _retrieve_item(self, event: asked.ItemRetrieve) -> None:
        code = "item_retrieve_invalid_item_id"
        item = self._context.conversation.get(event.item_id, code)
        self._put(out.event("conversation.item.retrieved", item=out.item_object(item)))

    async def _truncate_item(self, event: asked.ItemTruncate) -> None:
        self._context.conversation.get(event.item_id, "item_truncate_invalid_item_id")
        message = "only audio of the model can be truncated, and this item is text"
        raise RealtimeError("invalid_value", message, param="item_id")

    async def _create_response(self, event: asked.ResponseCreate) -> None:
        await self._responses.create(event.response or ResponseConfig())
        self._answered = True

    async def _cancel_response(self, event: asked.ResponseCancel) -> None:
        self._responses.cancel(event.response_id)

    def _on_held(self, item_ids: list[str], tokens: int) -> None:
        """Tells a client that asked for it which items the engine holds by now."""
        if item_ids and self._context.reports:
            self._put(out.event("s2l.prefilled", item_ids=item_ids, tokens=tokens))

    def _note_state(self) -> None:
        state = "open" if self._context.begun or not self._answered else "idle"
        if self.answering:
            state = "answering"
        if state != self._state:
            SESSIONS.labels(self._state).dec()
            SESSIONS.labels(state).inc()
            self._state = state

    def _session(self) -> out.Event:
        config, info = self._context.config, self._engine.info
        return out.session_object(
            self._id, config, info, prefill=self._prefill, expires_at=self._expires_at
        )


async def _refuse_audio(event: Any) -> None:
    kind = event.__struct_config__.tag
    raise not_supported(f"{kind}: it serves text alone", "type")
