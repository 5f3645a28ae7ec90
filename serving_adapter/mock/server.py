"""Serves the mock engine over the same Realtime code as the real one, and its tokenizer as vLLM."""

from aiohttp import WSMsgType, web

from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.client import MAX_FRAME_BYTES, ROUTE
from s2l.serving_adapter.realtime.connection import Connection


class MockServer:
    """A Realtime server on loopback; ``url`` is known once it is started."""

    def __init__(self, engine: MockEngine, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.engine = engine
        self.admission = Admission(
            engine.info.kv_capacity,
            block_size=engine.info.block_size,
            max_sessions=engine.info.max_sessions,
        )
        self.url = ""
        self._host, self._port = host, port
        self._runner = web.AppRunner(self._app(), shutdown_timeout=1.0)

    async def __aenter__(self) -> "MockServer":
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_FRAME_BYTES)
        app.add_routes(
            [
                web.get(ROUTE, self._realtime),
                web.get("/health", self._health),
                web.post("/tokenize", self._tokenize),
                web.post("/detokenize", self._detokenize),
            ]
        )
        return app

    async def _realtime(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MAX_FRAME_BYTES, compress=False)
        await socket.prepare(request)
        await Connection(_AiohttpSocket(socket), self.engine, self.admission).serve()
        return socket

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _tokenize(self, request: web.Request) -> web.Response:
        tokens = self.engine.vocabulary.encode((await request.json())["prompt"])
        return web.json_response({"tokens": tokens, "count": len(tokens)})

    async def _detokenize(self, request: web.Request) -> web.Response:
        tokens = (await request.json())["tokens"]
        return web.json_response({"prompt": self.engine.vocabulary.decode(tokens)})


class _AiohttpSocket:
    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return None
        frame: str | bytes = message.data
        return frame

    async def send(self, frame: str) -> None:
        try:
            await self._socket.send_str(frame)
        except (ConnectionError, RuntimeError):
            return  # gone: the receiving side sees it and ends the session
