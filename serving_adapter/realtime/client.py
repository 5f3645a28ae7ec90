"""Client for any server that speaks the text part of the OpenAI Realtime API."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec

from s2l.serving_adapter.base import Prompt, ServerInfo, ServingError
from s2l.serving_adapter.realtime.session import PreparedSession

ROUTE: Final = "/v1/realtime"
CONNECT_TIMEOUT_S: Final = 10.0
MAX_FRAME_BYTES: Final = 64 * 2**20


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

    def prepare(self, prompt: Prompt) -> PreparedSession:
        """Encode all frames that the prompt takes."""
        return PreparedSession(self.connect, prompt, extended=self._extended, model=self._model)

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
