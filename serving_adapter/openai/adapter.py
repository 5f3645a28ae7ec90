"""Measures any server that speaks the chat or completions API of OpenAI."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import SplitResult, urlsplit

import aiohttp

from s2l.serving_adapter.base import Capabilities, Prompt, ServerInfo, ServingError
from s2l.serving_adapter.openai.connection_pool import ConnectionPool
from s2l.serving_adapter.openai.context_states import ContextStates, escaped
from s2l.serving_adapter.openai.http_json import AT_ONCE, HttpJson
from s2l.serving_adapter.openai.prepared_completion import PreparedCompletion
from s2l.serving_adapter.openai.request_template import Api, RequestTemplate, Salting
from s2l.serving_adapter.openai.server_kind import ServerKind, find_kind
from s2l.serving_adapter.openai.tokenizer import TOKENIZERS, LocalTokenizer, Tokenizer
from s2l.workloads.at_once import each

APIS: Final = ("auto", "chat", "completions")
CONNECTIONS: Final = ("reuse", "new")
PROBE_TIMEOUT_S: Final = 30.0

NO_TOKENIZER: Final = (
    "this server cannot count tokens; give the folder of the model's tokenizer, "
    "or leave contexts uncut"
)


class OpenAiAdapter:
    """One OpenAI-compatible server, given by the address of its root or of its ``/v1``.

    ``api``: which endpoint answers; ``auto``: chat where there is one that works. ``model``: the
    first that the server lists, unless named. ``connections``: kept and reused, or a new
    one for every request.
    ``tokenizer_path``: a model's folder with its ``tokenizer.json``, for servers without a
    tokenizer endpoint. ``fields`` are added to the body of every request, None taking out one that
    would be there. Connections go to the server itself, whatever proxy the environment names.

    Raises:
        ValueError: an option is not one of its choices.
    """

    name = "openai"

    def __init__(
        self,
        url: str,
        *,
        api: str = "auto",
        api_key: str | None = None,
        model: str | None = None,
        connect_timeout_s: float = 10.0,
        connections: str = "reuse",
        tokenizer_path: Path | None = None,
        fields: Mapping[str, Any] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._root = url.rstrip("/").removesuffix("/v1")
        self._address = _checked_address(self._root)
        _check_choice("api", api, APIS)
        _check_choice("connections", connections, CONNECTIONS)
        if connect_timeout_s <= 0:
            raise ValueError("connect_timeout_s must be above 0")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("the API key has characters that no HTTP header can carry")
        self._api, self._api_key, self._model = api, api_key, model
        self._keep_alive = connections == "reuse"
        self._tokenizer_path, self._fields = tokenizer_path, dict(fields or {})
        self._connect_timeout_s, self._tls = connect_timeout_s, tls
        self._http: aiohttp.ClientSession | None = None
        self._pool: ConnectionPool | None = None
        self._template: RequestTemplate | None = None
        self._tokenizer: Tokenizer | None = None

    async def __aenter__(self) -> "OpenAiAdapter":
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        timeout = aiohttp.ClientTimeout(PROBE_TIMEOUT_S, sock_connect=self._connect_timeout_s)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls if self._tls else True)
        self._http = aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector)
        self._pool = ConnectionPool(
            self._address,
            reuse=self._keep_alive,
            connect_timeout_s=self._connect_timeout_s,
            tls=self._tls,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._pool is not None:
            await self._pool.close()
        if self._http is not None:
            await self._http.close()

    async def probe(self) -> ServerInfo:
        """Find out what the server is, by its list of models and by what only its kind has."""
        kind = await find_kind(self._endpoints(), self._model)
        if self._tokenizer_path is not None:
            self._tokenizer = LocalTokenizer(self._tokenizer_path)
        elif kind.tokenizer is not None:
            self._tokenizer = TOKENIZERS[kind.tokenizer](self._endpoints())
        api = await self._chosen_api(kind)
        self._template = self._template_for(kind, api)
        salted = "cache_salt" if kind.cache_salt else "nonce"
        return ServerInfo(
            server=kind.server,
            version=kind.version,
            model=kind.model,
            max_model_len=kind.max_model_len,
            capabilities=Capabilities(
                counts_tokens=self._tokenizer is not None, separate_caches=True
            ),
            settings=kind.settings | {"api": api, "caches_kept_apart_by": salted},
        )

    async def truncate(self, texts: Sequence[str], budgets: Sequence[int]) -> list[str]:
        """Each text cut to its budget, by the server's tokenizer or the one on disk."""
        tokenizer = self._counted_by()

        async def cut(item: tuple[str, int]) -> str:
            return await tokenizer.cut(*item)

        return await each(cut, zip(texts, budgets, strict=True), AT_ONCE)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, by the server's tokenizer or the one on disk."""
        return await each(self._counted_by().count, texts, AT_ONCE)

    async def ready(self, requests: int) -> None:
        """Open connections ahead; none where each request is to have a new one."""
        if self._pool is not None:
            await self._pool.open_ahead(requests)

    def prepare(self, prompt: Prompt) -> PreparedCompletion:
        """Encode the prompt; the server was probed before."""
        template, pool = self._template, self._pool
        if template is None or pool is None:
            raise RuntimeError("OpenAiAdapter is used with 'async with', and probed first")
        return PreparedCompletion(
            pool=pool,
            states=ContextStates(prompt.chunks),
            answer=template.answer(prompt.instructions, prompt.question, prompt.max_output_tokens),
            warm_up=template.warm_up(prompt.instructions),
            salting=template.salting,
            fixed_bytes=len(escaped(prompt.instructions)),
        )

    def _endpoints(self) -> HttpJson:
        if self._http is None:
            raise RuntimeError("OpenAiAdapter is used with 'async with'")
        return HttpJson(self._root, self._http)

    def _counted_by(self) -> Tokenizer:
        if self._tokenizer is None:
            raise ServingError("rejected", f"{self._root}: {NO_TOKENIZER}")
        return self._tokenizer

    async def _chosen_api(self, kind: ServerKind) -> Api:
        """vLLM offers chat for every model, and refuses it when there is no chat template: its
        tokenizer endpoint refuses too, and generates nothing."""
        if self._api != "auto":
            return cast(Api, self._api)
        if kind.chat is False:
            return "completions"
        if kind.server == "vllm":
            asked = {"model": kind.model, "messages": [{"role": "user", "content": "?"}]}
            try:
                await self._endpoints().post("/tokenize", asked)
            except ServingError:
                return "completions"
        return "chat"

    def _template_for(self, kind: ServerKind, api: Api) -> RequestTemplate:
        hosted = self._address.hostname == "api.openai.com"
        return RequestTemplate(
            address=self._address,
            api=api,
            model=kind.model,
            salting=Salting(by_field=kind.cache_salt),
            api_key=self._api_key,
            counts_each_event=kind.counts_each_event,
            keep_alive=self._keep_alive,
            max_tokens_field="max_completion_tokens" if hosted else "max_tokens",
            fields=self._fields,
        )


def _checked_address(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ValueError("credentials do not belong into the address; set S2L_API_KEY")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError(f"{url!r} is not a server address; write http://HOST:PORT")
    return parts


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}; choose one of {', '.join(choices)}")
