"""The responses of one session: at most one that belongs to the conversation, others apart."""

import asyncio
from collections.abc import Callable

from s2l.serving_adapter.realtime import server_events as out
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.conversation import Conversation, ConversationItem
from s2l.serving_adapter.realtime.engine import Engine, TextDecoder
from s2l.serving_adapter.realtime.limits import Limits, exceeded
from s2l.serving_adapter.realtime.response import Put, Response, Sampling
from s2l.serving_adapter.realtime.session_config import RealtimeError, ResponseConfig
from s2l.serving_adapter.realtime.session_context import SessionContext


class Responses:
    """Begins and cancels responses. ``on_end`` is called after each."""

    def __init__(
        self,
        context: SessionContext,
        put: Put,
        engine: Engine,
        admission: Admission,
        limits: Limits,
        on_end: Callable[[], None],
    ) -> None:
        self._conversation_id = out.new_id("conv")
        self._context = context
        self._put = put
        self._engine = engine
        self._admission = admission
        self._limits = limits
        self._on_end = on_end
        self._active: dict[str, Response] = {}
        self._own_id = ""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def active(self) -> int:
        """How many are under way."""
        return len(self._active)

    async def create(self, config: ResponseConfig) -> None:
        """Begin a response.

        Raises:
            RealtimeError: it asks for what is not there, or another one is under way.
            Overloaded: too many sessions wait for KV cache already.
        """
        config.check()
        async with self._context.settled():
            self._check_free(config)
            view = await self._context.view(config.instructions, config.input)
            head = self._head(config)
            item = ConversationItem(out.new_id("item"), (), "assistant", status="in_progress")
            response = self._begun(config, view, item, out.ResponseEvents(head, item))
            self._start(head, response)

    def cancel(self, response_id: str | None) -> None:
        """End a response, the conversation's own unless another is named.

        Raises:
            RealtimeError: it is not under way.
        """
        response = self._active.get(self._own_id if response_id is None else response_id)
        if response is None or not response.cancel():
            message = "cancellation failed: no active response found"
            raise RealtimeError("response_cancel_not_active", message, param="response_id")

    async def aclose(self) -> None:
        """Abort all and free their KV blocks."""
        tasks, active = list(self._tasks), list(self._active.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for response in active:
            await response.prompt.aclose()

    def _check_free(self, config: ResponseConfig) -> None:
        if config.conversation != "none" and self._context.answering:
            message = f"the conversation has an active response in progress: {self._own_id}; "
            message += "wait until it is finished before creating a new one"
            raise RealtimeError("conversation_already_has_active_response", message)
        if len(self._active) >= self._limits.max_responses:
            message = f"{len(self._active)} responses are under way; wait for one to finish"
            raise exceeded("max_responses", "rate_limit_exceeded", message)

    def _head(self, config: ResponseConfig) -> out.ResponseHead:
        own = config.conversation != "none"
        return out.ResponseHead(
            response_id=out.new_id("resp"),
            conversation_id=self._conversation_id if own else None,
            max_output_tokens=config.max_output_tokens
            or self._context.config.max_output_tokens
            or "inf",
            metadata=config.metadata,
            previous_item_id=self._context.conversation.last_id if own else None,
        )

    def _begun(
        self,
        config: ResponseConfig,
        view: Conversation,
        item: ConversationItem,
        events: out.ResponseEvents,
    ) -> Response:
        """The response, its prompt complete; its item is in the conversation if it has a place."""
        sampling = self._sampling(config, len(view.prompt))
        reports = self._context.reports
        if config.conversation == "none" or config.input is not None:
            in_conversation = None if config.conversation == "none" else item
            apart = self._context.begin_answer_apart(view, in_conversation)
            return Response(apart, sampling, item, events, self._put, reports=reports)
        prompt = self._context.begin_answer(view, item)
        return Response(
            prompt.prompt,
            sampling,
            item,
            events,
            self._put,
            reports=reports,
            on_first_step=prompt.all_held,
        )

    def _sampling(self, config: ResponseConfig, prompt_tokens: int) -> Sampling:
        room = self._engine.info.max_model_len - prompt_tokens
        asked = config.max_output_tokens or self._context.config.max_output_tokens or "inf"
        temperature = config.temperature
        if temperature is None:
            temperature = self._context.temperature
        return Sampling(room if asked == "inf" else min(asked, room), temperature)

    def _start(self, head: out.ResponseHead, response: Response) -> None:
        own = head.conversation_id is not None
        self._active[head.response_id] = response
        if own:
            self._own_id = head.response_id
        self._put(response.events.created())
        self._put(self._rate_limits())
        run = self._run(head.response_id, response, self._engine.decoder(), own=own)
        task = asyncio.create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(
        self, response_id: str, response: Response, decoder: TextDecoder, *, own: bool
    ) -> None:
        try:
            await response.run(decoder)
        finally:
            del self._active[response_id]
            self._on_end()
        if own:
            await self._context.answered(response.item)
        self._on_end()

    def _rate_limits(self) -> out.Event:
        responses = self._limits.max_responses
        tokens = (self._engine.info.kv_capacity, self._admission.free_tokens)
        return out.rate_limits(requests=(responses, responses - self.active), tokens=tokens)
