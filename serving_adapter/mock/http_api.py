"""The mock's HTTP endpoints: OpenAI's, vLLM's own, and those that tell of the mock itself."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from s2l.serving_adapter.mock.backend import Backend
from s2l.serving_adapter.mock.faults import Fault
from s2l.serving_adapter.mock.generation import Generation
from s2l.serving_adapter.mock.http_connection import HttpConnection, Request
from s2l.serving_adapter.mock.metrics import exposition
from s2l.serving_adapter.mock.openai_format import error_json
from s2l.serving_adapter.mock.openai_request import (
    BadRequest,
    Message,
    chat_asked,
    completion_asked,
    render_chat,
)
from s2l.serving_adapter.mock.request_log import Entry

JSON: Final = "application/json"
_ERROR_TYPES: Final = {400: "BadRequestError", 404: "NotFoundError", 429: "RateLimitError"}
Handler = Callable[[HttpConnection, Request], None]
_Body = TypeVar("_Body")


class _Tokenize(msgspec.Struct):
    prompt: str | None = None
    messages: list[Message] | None = None


class _Detokenize(msgspec.Struct):
    tokens: list[int]


class HttpApi:
    """Answers one request of a connection."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/completions"): self._completion,
            ("POST", "/v1/chat/completions"): self._chat,
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): self._health,
            ("GET", "/version"): self._version,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
            ("GET", "/metrics"): self._metrics,
            ("POST", "/reset_prefix_cache"): self._reset_prefix_cache,
            ("GET", "/mock/log"): self._log,
            ("DELETE", "/mock/log"): self._clear_log,
            ("GET", "/mock/timing"): self._timing,
            ("DELETE", "/mock/timing"): self._clear_timing,
        }
        self._paths = {path for _, path in self._routes}

    def handle(self, connection: HttpConnection, request: Request) -> None:
        """Answer, now or over time."""
        path = request.path.partition("?")[0]
        handler = self._routes.get((request.method, path))
        try:
            if handler is None:
                known = path in self._paths
                raise BadRequest("Method Not Allowed" if known else "Not Found", 405 - (not known))
            handler(connection, request)
        except BadRequest as error:
            _refuse(connection, error.status, str(error))

    def _completion(self, connection: HttpConnection, request: Request) -> None:
        self._generate(connection, request, "completion")

    def _chat(self, connection: HttpConnection, request: Request) -> None:
        self._generate(connection, request, "chat")

    def _generate(self, connection: HttpConnection, request: Request, kind: str) -> None:
        backend, info = self._backend, self._backend.engine.info
        decode = chat_asked if kind == "chat" else completion_asked
        default = backend.options.output_tokens
        asked = decode(request.body, backend.engine.vocabulary, default, info.model)
        total = asked.prompt_tokens + asked.output_tokens
        limit = info.max_model_len
        if total > limit or not backend.scheduler.fits(total):
            limit = min(limit, info.kv_capacity)
            raise BadRequest(
                f"This model's maximum context length is {limit} tokens. However, you requested "
                f"{asked.output_tokens} output tokens and your prompt contains "
                f"{asked.prompt_tokens} input tokens, for a total of {total} tokens."
            )
        number = next(backend.numbers)
        fault = backend.options.faults.of(number)
        if fault is not None and fault.kind in ("status", "drop"):
            self._fail(connection, request, number, fault)
            return
        Generation(backend, connection, request, asked, kind, number, fault).begin()

    def _fail(
        self, connection: HttpConnection, request: Request, number: int, fault: Fault
    ) -> None:
        request_id = (request.request_id or b"%016x" % number).decode()
        outcome = str(fault.status) if fault.status else fault.kind
        self._backend.log.add(Entry(number, request_id, request.path, request.arrived_ns, outcome))
        if fault.status is None:
            connection.cut()
            return
        wait = fault.retry_after_s
        headers = "" if wait is None else f"retry-after: {wait}\r\n"
        _refuse(connection, fault.status, "this failure was asked for", headers)

    def _models(self, connection: HttpConnection, request: Request) -> None:
        info = self._backend.engine.info
        model = {
            "id": info.model,
            "object": "model",
            "created": self._backend.created_s,
            "owned_by": info.engine,
            "root": info.model,
            "parent": None,
            "max_model_len": info.max_model_len,
        }
        _answer(connection, {"object": "list", "data": [model]})

    def _health(self, connection: HttpConnection, request: Request) -> None:
        connection.reply(200, b"", JSON)

    def _version(self, connection: HttpConnection, request: Request) -> None:
        info = self._backend.engine.info
        _answer(connection, {"version": f"{info.engine} {info.version}"})

    def _tokenize(self, connection: HttpConnection, request: Request) -> None:
        asked = _decode(request.body, _Tokenize)
        text = asked.prompt if asked.messages is None else render_chat(asked.messages)
        if text is None:
            raise BadRequest("give a prompt or messages")
        tokens = self._backend.engine.vocabulary.encode(text)
        limit = self._backend.engine.info.max_model_len
        count = {"count": len(tokens), "max_model_len": limit}
        _answer(connection, count | {"tokens": tokens, "token_strs": None})

    def _detokenize(self, connection: HttpConnection, request: Request) -> None:
        tokens = _decode(request.body, _Detokenize).tokens
        try:
            text = self._backend.engine.vocabulary.decode(tokens)
        except IndexError:
            raise BadRequest("a token id is out of vocabulary: use those of /tokenize") from None
        _answer(connection, {"prompt": text})

    def _metrics(self, connection: HttpConnection, request: Request) -> None:
        body = exposition(self._backend)
        connection.reply(200, body, "text/plain; version=0.0.4; charset=utf-8")

    def _reset_prefix_cache(self, connection: HttpConnection, request: Request) -> None:
        """Refused while requests hold blocks, as vLLM does."""
        self._backend.engine.memory.clear()
        _answer(connection, {"success": self._backend.scheduler.cache.clear()})

    def _log(self, connection: HttpConnection, request: Request) -> None:
        connection.reply(200, self._backend.log.lines(), "application/jsonl")

    def _clear_log(self, connection: HttpConnection, request: Request) -> None:
        self._backend.log.clear()
        connection.reply(200, b"", JSON)

    def _timing(self, connection: HttpConnection, request: Request) -> None:
        _answer(connection, self._backend.lateness.summary())

    def _clear_timing(self, connection: HttpConnection, request: Request) -> None:
        self._backend.lateness.clear()
        connection.reply(200, b"", JSON)


def _answer(connection: HttpConnection, value: Any) -> None:
    connection.reply(200, msgspec.json.encode(value), JSON)


def _refuse(connection: HttpConnection, status: int, message: str, headers: str = "") -> None:
    kind = _ERROR_TYPES.get(status, "InternalServerError")
    connection.reply(status, error_json(message, kind, status), JSON, headers)


def _decode(body: bytes, kind: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(str(error)) from None
