"""Finds out what an OpenAI-compatible server is, by the endpoints that only its kind has."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.http_json import HttpJson

OWN_ENDPOINTS: Final = (
    "/version",
    "/props",
    "/get_server_info",
    "/info",
    "/api/version",
    "/openapi.json",
)


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A server's software and what it says of the model.

    ``tokenizer`` names one of TOKENIZERS, None where texts cannot be counted; ``chat`` is None
    where the server does not say whether it has a chat endpoint.
    """

    server: str
    version: str
    model: str
    max_model_len: int | None = None
    tokenizer: str | None = None
    cache_salt: bool = False
    counts_each_event: bool = False
    chat: bool | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the endpoints said; empty where there is none."""

    model: dict[str, Any]
    by_path: dict[str, dict[str, Any]]

    def __call__(self, path: str, *keys: str) -> Any:
        """A value inside an endpoint's answer, None where it is not there."""
        found: Any = self.by_path.get(path, {})
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    @property
    def owner(self) -> str:
        return str(self.model.get("owned_by", ""))

    def has(self, path: str) -> bool:
        """Whether the server's API description lists the path."""
        return path in (self("/openapi.json", "paths") or {})


async def find_kind(http: HttpJson, model: str | None) -> ServerKind:
    """Ask a server what it is.

    Raises:
        ServingError: it does not list its models, or has no model of this name.
    """
    listed = _models(await http.get("/v1/models"))
    chosen = _chosen(listed, model)
    answers = await asyncio.gather(*map(http.get_if_there, OWN_ENDPOINTS))
    by_path = {
        path: answer
        for path, answer in zip(OWN_ENDPOINTS, answers, strict=True)
        if isinstance(answer, dict)
    }
    told = _Told(chosen, by_path)
    recognise = next(recognise for matches, recognise in KINDS if matches(told))
    return recognise(told)


def _models(answer: Any) -> list[dict[str, Any]]:
    data = answer.get("data") if isinstance(answer, dict) else None
    models = [m for m in data if isinstance(m, dict)] if isinstance(data, list) else []
    if not models:
        raise ServingError("protocol", "/v1/models lists no model; load one, or check the address")
    return models


def _chosen(models: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    if name is None:
        return models[0]
    for model in models:
        if model.get("id") == name:
            return model
    known = ", ".join(str(model.get("id")) for model in models[:10])
    raise ServingError("rejected", f"the server has no model {name!r}; it has {known}")


def _has_cache_salt(told: _Told) -> bool:
    schemas = told("/openapi.json", "components", "schemas") or {}
    request = schemas.get("ChatCompletionRequest") or schemas.get("CompletionRequest") or {}
    return "cache_salt" in request.get("properties", {})


def _common(told: _Told) -> dict[str, Any]:
    described = "/openapi.json" in told.by_path
    chat = told.has("/v1/chat/completions") if described else None
    model = str(told.model.get("id", ""))
    return {"model": model, "chat": chat, "cache_salt": _has_cache_salt(told)}


def _vllm(told: _Told) -> ServerKind:
    length = told.model.get("max_model_len")
    return ServerKind(
        server="vllm",
        version=str(told("/version", "version") or ""),
        max_model_len=length if isinstance(length, int) else None,
        tokenizer="vllm" if told.has("/tokenize") else None,
        counts_each_event=True,
        settings={"root": told.model["root"]} if told.model.get("root") else {},
        **_common(told),
    )


def _sglang(told: _Told) -> ServerKind:
    info = told.by_path.get("/get_server_info", {})
    wanted = ("context_length", "chunked_prefill_size", "page_size", "dtype", "tp_size")
    length = told.model.get("max_model_len") or info.get("context_length")
    return ServerKind(
        server="sglang",
        version=str(info.get("version") or ""),
        max_model_len=length if isinstance(length, int) else None,
        tokenizer="vllm" if told.has("/tokenize") and told.has("/detokenize") else None,
        counts_each_event=True,
        settings={name: info[name] for name in wanted if info.get(name) is not None},
        **_common(told),
    )


def _llama_cpp(told: _Told) -> ServerKind:
    slot = told("/props", "default_generation_settings", "n_ctx")
    return ServerKind(
        server="llama.cpp",
        version=str(told("/props", "build_info") or ""),
        max_model_len=slot if isinstance(slot, int) else None,
        tokenizer="llama.cpp",
        settings={"slots": told("/props", "total_slots")},
        **_common(told),
    )


def _llama_cpp_python(told: _Told) -> ServerKind:
    return ServerKind(
        server="llama-cpp-python",
        version=str(told("/openapi.json", "info", "version") or ""),
        tokenizer="llama-cpp-python",
        **_common(told),
    )


def _tgi(told: _Told) -> ServerKind:
    info = told.by_path["/info"]
    length = info.get("max_total_tokens")
    wanted = (
        "model_dtype",
        "max_input_tokens",
        "max_batch_total_tokens",
        "max_concurrent_requests",
    )
    return ServerKind(
        server="tgi",
        version=str(info.get("version") or ""),
        max_model_len=length if isinstance(length, int) else None,
        tokenizer="tgi",
        settings={name: info[name] for name in wanted if info.get(name) is not None},
        **_common(told),
    )


def _ollama(told: _Told) -> ServerKind:
    version = str(told("/api/version", "version") or "")
    return ServerKind(server="ollama", version=version, **_common(told))


def _mock(told: _Told) -> ServerKind:
    """This project's own mock: vLLM's endpoints, without an API description."""
    return ServerKind(
        server="s2l-mock",
        version=str(told("/version", "version") or "").removeprefix("s2l-mock "),
        model=str(told.model.get("id", "")),
        max_model_len=told.model.get("max_model_len"),
        tokenizer="vllm",
        cache_salt=True,
        chat=True,
    )


def _other(told: _Told) -> ServerKind:
    length = told.model.get("max_model_len") or told.model.get("context_length")
    return ServerKind(
        server=told.owner or "openai-compatible",
        version=str(told("/version", "version") or ""),
        max_model_len=length if isinstance(length, int) else None,
        tokenizer="vllm" if told.has("/tokenize") and told.has("/detokenize") else None,
        **_common(told),
    )


KINDS: Final[tuple[tuple[Callable[[_Told], bool], Callable[[_Told], ServerKind]], ...]] = (
    (lambda told: told.owner == "vllm", _vllm),
    (lambda told: told.owner == "s2l-mock", _mock),
    (lambda told: told.owner == "sglang" or "/get_server_info" in told.by_path, _sglang),
    (lambda told: told.has("/extras/tokenize"), _llama_cpp_python),
    (lambda told: "/props" in told.by_path, _llama_cpp),
    (lambda told: bool(told("/info", "model_id")), _tgi),
    (lambda told: "/api/version" in told.by_path, _ollama),
    (lambda told: True, _other),
)
"""How each kind is told from the others, and read; the first that matches."""
