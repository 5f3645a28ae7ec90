"""Client for any server that speaks the text part of the OpenAI Realtime API."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import aiohttp
import msgspec

from s2l.serving_adapter.base import Capabilities, Prompt, ServerInfo, ServingError
from s2l.serving_adapter.realtime.session import PreparedSession
from s2l.serving_adapter.realtime.web_socket import (
    MAX_MESSAGE_BYTES,
    ClientSocket,
    Endpoint,
    SocketListener,
)
from s2l.workloads.at_once import each

ROUTE: Final = "/v1/realtime"
CONNECT_TIMEOUT_S: Final = 10.0
MAX_FRAME_BYTES: Final = MAX_MESSAGE_BYTES
_AT_ONCE: Final = 16
_HINT: Final = "name a server that speaks the Realtime API, such as vLLM with VLLM_PLUGINS=s2l"


class RealtimeAdapter:
    """One Realtime server, given by the ``http(s)://`` address of its root.

    Each request has a WebSocket of its own: that is what a session is.
    """

    name = "realtime"

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._endpoint = Endpoint(f"{self._url}{ROUTE}", tuple(self._headers.items()))
        self._tls = ssl.create_default_context() if self._endpoint.secure else None
        self._connect_timeout_s = connect_timeout_s
        self._http: aiohttp.ClientSession | None = None
        self._extended = False
        self._model = ""

    async def __aenter__(self) -> "RealtimeAdapter":
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def probe(self) -> ServerInfo:
        """Open a session and read what the server says of it."""
        first = _FirstMessage()
        socket = self.connect(first)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                message = await first.message
            # Names are looked up once: a look-up for each request would be measured with it.
            self._endpoint = replace(self._endpoint, address=socket.peer)
        except TimeoutError:
            raise self._not_realtime("sends no session.created") from None
        except ServingError as error:
            if error.error_type == "protocol":
                raise ServingError("protocol", f"{error}; {_HINT}") from None
            raise
        finally:
            socket.close()
        return self._read_greeting(message)

    async def truncate(self, texts: Sequence[str], budgets: Sequence[int]) -> list[str]:
        """Cut texts by vLLM's ``/tokenize`` and ``/detokenize``."""

        async def cut(item: tuple[str, int]) -> str:
            text, budget = item
            tokens = await self._tokenize(text)
            if len(tokens) <= budget:
                return text
            answer = await self._post("/detokenize", {"tokens": tokens[:budget]})
            return str(answer["prompt"]).rstrip("\ufffd")

        return await each(cut, zip(texts, budgets, strict=True), _AT_ONCE)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens by vLLM's ``/tokenize``."""
        return [len(ids) for ids in await each(self._tokenize, texts, _AT_ONCE)]

    async def ready(self, requests: int) -> None:
        """Nothing: each session opens a socket of its own."""

    def prepare(self, prompt: Prompt) -> PreparedSession:
        """Encode all frames that the prompt takes."""
        return PreparedSession(self.connect, prompt, extended=self._extended, model=self._model)

    def connect(self, listener: SocketListener) -> ClientSocket:
        """Begin to connect to the server's Realtime route."""
        return ClientSocket(
            self._endpoint, listener, connect_timeout_s=self._connect_timeout_s, tls=self._tls
        )

    def _read_greeting(self, message: bytes) -> ServerInfo:
        try:
            created = msgspec.json.decode(message)
            session = created["session"]
            if created["type"] != "session.created" or not isinstance(session, dict):
                raise KeyError("session.created")
        except (msgspec.DecodeError, KeyError, TypeError):
            raise self._not_realtime("does not begin with session.created") from None
        own = session.get("s2l")
        self._extended = isinstance(own, dict)
        self._model = str(session.get("model", ""))
        return _server_info(self._model, own if isinstance(own, dict) else {})

    def _not_realtime(self, what: str) -> ServingError:
        return ServingError("protocol", f"{self._url}: {what}; {_HINT}")

    async def _tokenize(self, text: str) -> list[int]:
        if not text:
            return []
        answer = await self._post("/tokenize", {"prompt": text, "add_special_tokens": False})
        return list(answer["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._url}{path}"
        if self._http is None:
            self._http = aiohttp.ClientSession(headers=self._headers)
        try:
            async with self._http.post(url, json=body) as response:
                if response.status != 200:
                    raise ServingError("protocol", f"{url}: HTTP {response.status}")
                answer: dict[str, Any] = await response.json()
                return answer
        except (aiohttp.ClientError, OSError) as error:
            raise ServingError("connect", f"{url}: {error}") from None


class _FirstMessage:
    """Waits for what a server says first."""

    def __init__(self) -> None:
        self.message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def on_open(self) -> None:
        """Nothing is sent."""

    def on_message(self, data: bytes) -> None:
        if not self.message.done():
            self.message.set_result(data)

    def on_lost(self, error: ServingError) -> None:
        if not self.message.done():
            self.message.set_exception(error)


def _server_info(model: str, own: dict[str, Any]) -> ServerInfo:
    settings = {k: v for k, v in own.items() if k not in ("engine", "engine_version", "settings")}
    return ServerInfo(
        server=str(own.get("engine", "realtime")),
        version=str(own.get("engine_version", "")),
        model=model,
        max_model_len=own.get("max_model_len"),
        capabilities=Capabilities(counts_tokens=bool(own), separate_caches=bool(own)),
        settings={**settings, **(own.get("settings") or {})},
    )
