"""Client for any server that speaks the text part of the OpenAI Realtime API."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from s2l.serving_adapter.base import (
    Finished,
    Prefilled,
    Prompt,
    ServerEvent,
    ServerInfo,
    ServingError,
    TextDelta,
    Usage,
)
from s2l.serving_adapter.realtime.context_items import ContextItems, create_item

ROUTE: Final = "/v1/realtime"
CONNECT_TIMEOUT_S: Final = 10.0
MAX_FRAME_BYTES: Final = 64 * 2**20
_encode = msgspec.json.encode


class Reported(msgspec.Struct, frozen=True):
    """The extension's fields of a server event."""

    tokens: int | None = None


class Problem(msgspec.Struct, frozen=True):
    """The API's error object."""

    message: str = ""
    code: str | None = None
    type: str | None = None


class CachedDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class Invalidated(msgspec.Struct, frozen=True):
    invalidated_tokens: int | None = None


class UsageObject(msgspec.Struct, frozen=True):
    s2l: Invalidated | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: CachedDetails | None = None


class StatusDetails(msgspec.Struct, frozen=True):
    reason: str | None = None
    error: Problem | None = None


class ResponseObject(msgspec.Struct, frozen=True):
    status: str = ""
    status_details: StatusDetails | None = None
    usage: UsageObject | None = None


class ServerFrame(msgspec.Struct, frozen=True):
    """The fields of server events that matter here; others are skipped while decoding."""

    type: str
    delta: str = ""
    item_ids: list[str] = []
    tokens: int | None = None
    s2l: Reported | None = None
    error: Problem | None = None
    response: ResponseObject | None = None


_decoder = msgspec.json.Decoder(ServerFrame)


class RealtimeAdapter:
    """One Realtime server, given by the ``http(s)://`` address of its root."""

    name = "realtime"

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._http: aiohttp.ClientSession | None = None
        self._extended = False
        self._model = ""

    async def __aenter__(self) -> "RealtimeAdapter":
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        # No hidden cap: a client that queues connections measures itself.
        self._http = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._http is not None:
            await self._http.close()

    @property
    def http(self) -> aiohttp.ClientSession:
        """The open client session; the adapter is used as a context manager."""
        if self._http is None:
            raise RuntimeError("RealtimeAdapter is used with 'async with'")
        return self._http

    async def probe(self) -> ServerInfo:
        """Open a session and read what the server says of it."""
        async with self.connect() as socket:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    frame = await socket.receive()
            except TimeoutError:
                raise self._not_realtime("sends no session.created") from None
        try:
            created = msgspec.json.decode(frame.data)
            session = created["session"]
            if created["type"] != "session.created" or not isinstance(session, dict):
                raise KeyError("session.created")
        except (msgspec.DecodeError, KeyError, TypeError):
            raise self._not_realtime("does not begin with session.created") from None
        own = session.get("s2l")
        self._extended = isinstance(own, dict)
        self._model = str(session.get("model", ""))
        return _server_info(self._model, own if isinstance(own, dict) else {})

    async def truncate(self, texts: Sequence[str], budgets: Sequence[int]) -> list[str]:
        """Cut texts by vLLM's ``/tokenize`` and ``/detokenize``."""

        async def cut(text: str, budget: int) -> str:
            tokens = await self._tokenize(text)
            if len(tokens) <= budget:
                return text
            answer = await self._post("/detokenize", {"tokens": tokens[:budget]})
            return str(answer["prompt"]).rstrip("\ufffd")

        return await _gather(cut(t, b) for t, b in zip(texts, budgets, strict=True))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens by vLLM's ``/tokenize``."""
        return [len(ids) for ids in await _gather(self._tokenize(text) for text in texts)]

    def prepare(self, prompt: Prompt) -> "PreparedSession":
        """Encode all frames that the prompt takes."""
        return PreparedSession(self, prompt, extended=self._extended, model=self._model)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket to the server. Raises ServingError."""
        url = f"{self._url}{ROUTE}"
        timeout = aiohttp.ClientWSTimeout(ws_close=1.0)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                socket = await self.http.ws_connect(
                    url, max_msg_size=MAX_FRAME_BYTES, timeout=timeout, compress=0
                )
        except aiohttp.WSServerHandshakeError as error:
            if error.status in (401, 403):
                raise ServingError("rejected", f"{url}: the API key was not accepted") from None
            raise self._not_realtime(f"answers HTTP {error.status} to {ROUTE}") from None
        except aiohttp.ClientConnectorError as error:
            kind = "refused" if isinstance(error.os_error, ConnectionRefusedError) else "connect"
            reason = error.os_error.strerror or str(error.os_error)
            raise ServingError(kind, f"{self._url}: cannot connect: {reason}") from None
        except TimeoutError:
            message = f"{self._url}: no answer within {CONNECT_TIMEOUT_S:.0f} s"
            raise ServingError("connect", message) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._not_realtime(f"breaks off the handshake ({error})") from None
        async with socket:
            yield socket

    def _not_realtime(self, what: str) -> ServingError:
        hint = "name a server that speaks the Realtime API, such as vLLM with VLLM_PLUGINS=s2l"
        return ServingError("protocol", f"{self._url}: {what}; {hint}")

    async def _tokenize(self, text: str) -> list[int]:
        if not text:
            return []
        answer = await self._post("/tokenize", {"prompt": text, "add_special_tokens": False})
        return list(answer["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            async with self.http.post(f"{self._url}{path}", json=body) as response:
                if response.status != 200:
                    raise ServingError(
                        "protocol", f"{self._url}{path}: HTTP {response.status}; needed for tokens"
                    )
                answer: dict[str, Any] = await response.json()
                return answer
        except (aiohttp.ClientError, OSError) as error:
            raise ServingError("connect", f"{self._url}{path}: {error}") from None


class PreparedSession:
    """The frames of one request, encoded."""

    def __init__(
        self, adapter: RealtimeAdapter, prompt: Prompt, *, extended: bool, model: str
    ) -> None:
        self._adapter = adapter
        self.setup = _frame(_session_update(prompt, extended=extended, model=model))
        items = ContextItems()
        self.chunks = tuple(tuple(map(_frame, items.apply(chunk))) for chunk in prompt.chunks)
        self.last_items = items.last_items
        create = {"max_output_tokens": prompt.max_output_tokens, "output_modalities": ["text"]}
        self.ask = (
            _frame(create_item("question", prompt.question)),
            _frame({"type": "response.create", "response": create}),
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator["RealtimeSession"]:
        """Connect and set the session up."""
        async with self._adapter.connect() as socket:
            session = RealtimeSession(socket, self)
            await session.send(self.setup)
            yield session


class RealtimeSession:
    """One request on one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, prepared: PreparedSession) -> None:
        self._socket = socket
        self._prepared = prepared
        self._reported = 0
        self._sent = 0

    async def send_chunk(self, index: int) -> None:
        """Send context chunk ``index``."""
        self._sent = index + 1
        for frame in self._prepared.chunks[index]:
            await self.send(frame)

    async def ask(self) -> None:
        """Send the question and ask for the answer."""
        for frame in self._prepared.ask:
            await self.send(frame)

    async def send(self, frame: str) -> None:
        """Send one frame. Raises ServingError when the server is gone."""
        try:
            await self._socket.send_str(frame)
        except (aiohttp.ClientError, OSError) as error:
            raise ServingError("disconnected", f"sending failed: {error}") from None

    async def events(self) -> AsyncIterator[ServerEvent]:
        """What the server says, until the answer is complete."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            for event in self._read(message.data):
                yield event
                if isinstance(event, Finished):
                    return
        raise ServingError(
            "disconnected", f"closed before the end (code {self._socket.close_code})"
        )

    def _read(self, data: str) -> list[ServerEvent]:
        try:
            frame = _decoder.decode(data)
        except msgspec.DecodeError as error:
            raise ServingError("protocol", f"not a Realtime event: {error}") from None
        if frame.type == "response.output_text.delta" and frame.delta:
            return [TextDelta(frame.delta, frame.s2l.tokens if frame.s2l else None)]
        if frame.type == "s2l.prefilled":
            return self._prefilled(frame)
        if frame.type == "error":
            problem = frame.error or Problem()
            raise ServingError("rejected", f"{problem.code or problem.type}: {problem.message}")
        if frame.type == "response.done":
            return [_finished(frame.response or ResponseObject())]
        return []

    def _prefilled(self, frame: ServerFrame) -> list[ServerEvent]:
        """Chunks that were sent, not reported before, and whose last item the server now holds."""
        held = set(frame.item_ids)
        last_items = self._prepared.last_items
        done = [i for i in range(self._reported, self._sent) if last_items[i] in held]
        if done:
            self._reported = done[-1] + 1
        return [Prefilled(index, frame.tokens or 0) for index in done]


def _finished(response: ResponseObject) -> Finished:
    details = response.status_details or StatusDetails()
    if response.status not in ("completed", "incomplete"):
        message = details.error.message if details.error else ""
        raise ServingError("server_error", f"response {response.status}: {message}")
    usage = response.usage or UsageObject()
    cached = usage.input_token_details.cached_tokens if usage.input_token_details else None
    reason = "length" if details.reason == "max_output_tokens" else (details.reason or "stop")
    invalidated = usage.s2l.invalidated_tokens if usage.s2l else None
    counted = Usage(usage.input_tokens, cached, usage.output_tokens, invalidated)
    return Finished(counted, reason)


def _session_update(prompt: Prompt, *, extended: bool, model: str) -> dict[str, Any]:
    session: dict[str, Any] = {
        "type": "realtime",
        "model": model,
        "instructions": prompt.instructions,
        "output_modalities": ["text"],
    }
    if extended:
        session["s2l"] = {"cache_salt": prompt.cache_salt, "report": True, "temperature": 0.0}
    return {"type": "session.update", "session": session}


def _frame(event: dict[str, Any]) -> str:
    return _encode(event).decode()


def _server_info(model: str, own: dict[str, Any]) -> ServerInfo:
    settings = {k: v for k, v in own.items() if k not in ("engine", "engine_version", "settings")}
    return ServerInfo(
        server=str(own.get("engine", "realtime")),
        version=str(own.get("engine_version", "")),
        model=model,
        max_model_len=own.get("max_model_len"),
        separate_caches=bool(own),
        settings={**settings, **(own.get("settings") or {})},
    )


async def _gather(coroutines: Any, *, at_once: int = 16) -> list[Any]:
    gate = asyncio.Semaphore(at_once)

    async def gated(coroutine: Any) -> Any:
        async with gate:
            return await coroutine

    return await asyncio.gather(*(gated(c) for c in coroutines))


def check_url(url: str) -> str:
    """The address of a server, checked.

    Raises:
        ValueError: it is not an ``http://`` or ``https://`` address with a host.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ValueError("credentials do not belong into the address; set S2L_API_KEY")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not a server address; write http://HOST:PORT")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{url!r} has no valid port; write http://HOST:PORT") from None
    return url
