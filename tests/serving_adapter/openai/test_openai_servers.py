"""What each kind of server is recognised by, and how its texts are counted and cut."""

from typing import Any

import pytest
from aiohttp import web
from scripted_server import chunk, hear, probed, prompt_of, scripted

from s2l.serving_adapter.adapters import detect
from s2l.serving_adapter.base import ServerInfo, ServingError
from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter


def listed(owner: str, **more: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "tiny", "owned_by": owner, **more}]}


def described(*paths: str, salted: bool = False, version: str = "0") -> dict[str, Any]:
    fields = {"cache_salt": {}} if salted else {}
    schemas = {"ChatCompletionRequest": {"properties": {"model": {}, **fields}}}
    return {
        "info": {"version": version},
        "paths": {path: {} for path in paths},
        "components": {"schemas": schemas},
    }


CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

SERVERS: dict[str, tuple[dict[str, Any], ServerInfo]] = {
    "sglang": (
        {
            "/v1/models": listed("sglang", max_model_len=2048),
            "/get_server_info": {"version": "0.5.4", "page_size": 1, "secret": "x"},
            "/openapi.json": described(CHAT, COMPLETIONS, "/tokenize", "/detokenize", salted=True),
        },
        ServerInfo(
            "sglang",
            "0.5.4",
            "tiny",
            2048,
            settings={"page_size": 1, "api": "chat", "caches_kept_apart_by": "cache_salt"},
        ),
    ),
    "llama.cpp": (
        {
            "/v1/models": listed("llamacpp"),
            "/props": {
                "build_info": "b6000-abc",
                "total_slots": 4,
                "default_generation_settings": {"n_ctx": 4096},
            },
        },
        ServerInfo(
            "llama.cpp",
            "b6000-abc",
            "tiny",
            4096,
            settings={"slots": 4, "api": "chat", "caches_kept_apart_by": "nonce"},
        ),
    ),
    "llama-cpp-python": (
        {
            "/v1/models": listed("me"),
            "/openapi.json": described(CHAT, COMPLETIONS, "/extras/tokenize", version="0.3.16"),
        },
        ServerInfo(
            "llama-cpp-python",
            "0.3.16",
            "tiny",
            settings={"api": "chat", "caches_kept_apart_by": "nonce"},
        ),
    ),
    "tgi": (
        {
            "/v1/models": listed("x"),
            "/info": {"model_id": "tiny", "version": "3.3", "max_total_tokens": 1000},
        },
        ServerInfo(
            "tgi", "3.3", "tiny", 1000, settings={"api": "chat", "caches_kept_apart_by": "nonce"}
        ),
    ),
    "completions only": (
        {
            "/v1/models": listed("someone", max_model_len=10),
            "/openapi.json": described(COMPLETIONS, "/tokenize", "/detokenize"),
        },
        ServerInfo(
            "someone",
            "",
            "tiny",
            10,
            settings={"api": "completions", "caches_kept_apart_by": "nonce"},
        ),
    ),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_servers_are_told_apart(name: str) -> None:
    pages, expected = SERVERS[name]
    async with scripted([b""], pages=pages) as server, OpenAiAdapter(server.url) as adapter:
        found = await adapter.probe()
    assert (found.server, found.version, found.model) == (
        expected.server,
        expected.version,
        expected.model,
    )
    assert (found.max_model_len, found.settings) == (expected.max_model_len, expected.settings)
    assert found.capabilities.counts_tokens
    assert found.capabilities.separate_caches


async def test_servers_without_a_tokenizer_count_nothing() -> None:
    pages = {"/v1/models": listed("library"), "/api/version": {"version": "0.12.0"}}
    async with scripted([b""], pages=pages) as server, OpenAiAdapter(server.url) as adapter:
        found = await adapter.probe()
        assert (found.server, found.version) == ("ollama", "0.12.0")
        assert not found.capabilities.counts_tokens
        with pytest.raises(ServingError, match="cannot count tokens"):
            await adapter.count_tokens(["a"])


async def test_the_v1_of_a_server_is_the_server() -> None:
    async with scripted([b""]) as server, OpenAiAdapter(f"{server.url}/v1/") as adapter:
        assert (await adapter.probe()).model == "tiny"


async def test_models_by_name() -> None:
    pages = {"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}
    async with scripted([b""], pages=pages) as server:
        async with OpenAiAdapter(server.url, model="b") as adapter:
            assert (await adapter.probe()).model == "b"
        async with OpenAiAdapter(server.url, model="c") as adapter:
            with pytest.raises(ServingError, match="no model 'c'; it has a, b"):
                await adapter.probe()
    empty = {"/v1/models": {"data": []}}
    async with scripted([b""], pages=empty) as server, OpenAiAdapter(server.url) as adapter:
        with pytest.raises(ServingError, match="lists no model"):
            await adapter.probe()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"api": "chats"}, "choose one of auto, chat, completions"),
        ({"connections": "some"}, "choose one of reuse, new"),
        ({"api_key": "a\r\nb"}, "no HTTP header can carry"),
    ],
)
def test_options_are_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        OpenAiAdapter("http://localhost", **options)


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x", "http://", "http://a:b@c"])
def test_addresses_are_checked(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        OpenAiAdapter(url)


async def test_the_key_and_further_fields_are_sent() -> None:
    async with scripted([b""]) as server, probed(server.url, api_key="k") as adapter:
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer k"}
        assert adapter.name == "openai"
    fields = {"top_k": 1, "stream_options": None}
    async with scripted([b"HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n"]) as server:
        await hear(server.url, api_key="k", fields=fields)
    assert server.posts[0].headers["authorization"] == "Bearer k"
    assert server.posts[0].body["top_k"] == 1
    assert "stream_options" not in server.posts[0].body


class Words:
    """An aiohttp server whose tokens are the characters' code points, under names as asked."""

    def __init__(self, pages: dict[str, Any], names: tuple[str, str, str, str]) -> None:
        self._pages, self._names = pages, names
        self._runner = web.AppRunner(self._app())

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application()
        encode, text_in, decode, text_out = self._names

        async def tokenize(request: web.Request) -> web.Response:
            tokens = [ord(c) for c in (await request.json())[text_in]]
            return web.json_response({"tokens": tokens})

        async def detokenize(request: web.Request) -> web.Response:
            tokens = (await request.json())["tokens"]
            return web.json_response({text_out: "".join(map(chr, tokens))})

        def page(body: Any) -> Any:
            async def answer(request: web.Request) -> web.Response:
                return web.json_response(body)

            return answer

        app.router.add_post(encode, tokenize)
        app.router.add_post(decode, detokenize)
        for path, body in self._pages.items():
            app.router.add_get(path, page(body))
        return app


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("sglang", ("/tokenize", "prompt", "/detokenize", "prompt")),
        ("llama.cpp", ("/tokenize", "content", "/detokenize", "content")),
        ("llama-cpp-python", ("/extras/tokenize", "input", "/extras/detokenize", "text")),
    ],
)
async def test_texts_are_counted_and_cut_by_the_server(
    name: str, names: tuple[str, str, str, str]
) -> None:
    async with Words(SERVERS[name][0], names) as url, probed(url) as adapter:
        assert await adapter.count_tokens(["abc", "", "Äb"]) == [3, 0, 2]
        assert await adapter.truncate(["abc", "abc", "", "abc"], [2, 3, 5, 0]) == [
            "ab",
            "abc",
            "",
            "",
        ]


async def test_a_tokenizer_on_disk_counts_for_servers_that_cannot(tmp_path: Any) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    pages = {"/v1/models": listed("library"), "/api/version": {"version": "1"}}
    async with scripted([b""], pages=pages) as server:
        async with probed(server.url, tokenizer_path=tmp_path) as adapter:
            assert await adapter.count_tokens(["a b c", ""]) == [3, 0]
            assert await adapter.truncate(["a b c", "a", "a"], [2, 2, 0]) == ["a b", "a", ""]
        async with OpenAiAdapter(server.url, tokenizer_path=tmp_path / "no") as adapter:
            with pytest.raises(ServingError, match="no such file"):
                await adapter.probe()


async def test_the_mock_over_chat_and_completions() -> None:
    async with MockServer(MockEngine()) as server:
        for api in ("chat", "completions"):
            heard = await hear(server.url, prompt_of(chunk("A b c.\n"), max_tokens=4), api=api)
            assert heard.of("finished") == [("finished", "length")]
            assert heard.usage is not None
            assert heard.usage.output_tokens == 4
        async with probed(server.url) as adapter:
            assert await adapter.truncate(["one two three"], [2]) == ["one two"]


async def test_the_adapter_for_a_server_is_found() -> None:
    async with MockServer(MockEngine()) as server:
        assert await detect(server.url, None) == "realtime"
    async with scripted([b""]) as server:
        assert await detect(server.url, None) == "openai"


async def test_a_server_that_speaks_neither_is_one_clear_error() -> None:
    app = web.Application()
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        with pytest.raises(ServingError, match="neither the Realtime API nor") as caught:
            await detect(url, None)
    finally:
        await runner.cleanup()
    assert caught.value.error_type == "protocol"
    assert "\n" not in str(caught.value)
    with pytest.raises(ServingError) as refused:
        await detect(url, None)
    assert refused.value.error_type == "refused"


async def test_a_wrong_key_is_said_so() -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": "Unauthorized"}, status=401)

    app = web.Application()
    app.router.add_get("/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        with pytest.raises(ServingError, match=r"key|401") as caught:
            await detect(f"http://127.0.0.1:{runner.addresses[0][1]}", "wrong")
    finally:
        await runner.cleanup()
    assert caught.value.error_type == "rejected"
