"""Counts and cuts texts by tokens: by the server's own endpoint, or by a tokenizer on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.http_json import HttpJson

REPLACEMENT: Final = "\ufffd"
Kind = TypeVar("Kind")

INSTALL: Final = "pip install 's2l[tokenizers]'"


class Tokenizer(Protocol):
    """One text at a time; no tokens that a model's prompt begins or ends with are added."""

    async def count(self, text: str) -> int:
        """Tokens of the text."""

    async def cut(self, text: str, budget: int) -> str:
        """The text's first tokens, ``budget`` at most."""


class EndpointTokenizer:
    """A pair of endpoints: text to tokens, and back.

    ``names`` are: path and text's field of the first, path and answer's field of the second.
    """

    def __init__(self, http: HttpJson, *names: str) -> None:
        self._http, self._names = http, names

    async def count(self, text: str) -> int:
        """Tokens of the text."""
        return len(await self._tokens(text))

    async def cut(self, text: str, budget: int) -> str:
        """The text's first tokens; a character cut in two is left out."""
        tokens = await self._tokens(text)
        if len(tokens) <= budget:
            return text
        _, _, path, field = self._names
        answer = await self._http.post(path, {"tokens": tokens[:budget]})
        return _field(answer, field, path, str).rstrip(REPLACEMENT)

    async def _tokens(self, text: str) -> list[int]:
        if not text:
            return []
        path, field, _, _ = self._names
        body = {field: text, "add_special_tokens": False, "add_special": False}
        return _field(await self._http.post(path, body), "tokens", path, list)


class TgiTokenizer:
    """TGI's ``/tokenize``, which tells where in the text each token stands."""

    def __init__(self, http: HttpJson) -> None:
        self._http = http

    async def count(self, text: str) -> int:
        """Tokens of the text."""
        return len(await self._stops(text))

    async def cut(self, text: str, budget: int) -> str:
        """The text up to where its last token within the budget stops."""
        stops = await self._stops(text)
        return text if len(stops) <= budget else text[: stops[budget - 1] if budget else 0]

    async def _stops(self, text: str) -> list[int]:
        if not text:
            return []
        answer = await self._http.post("/tokenize", {"inputs": text, "add_special_tokens": False})
        tokens = answer if isinstance(answer, list) else []
        # Tokens that the model's prompt begins with stand nowhere in the text.
        return [int(t["stop"]) for t in tokens if t.get("stop", 0) > t.get("start", 0)]


class LocalTokenizer:
    """A ``tokenizer.json`` on disk."""

    def __init__(self, path: Path) -> None:
        try:
            import tokenizers
        except ImportError:
            text = f"a tokenizer on disk needs the package tokenizers: {INSTALL}"
            raise ServingError("rejected", text) from None
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise ServingError("rejected", f"{file}: no such file; name a model's folder")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing more precise
            raise ServingError("rejected", f"{file}: not a tokenizer: {error}") from None

    async def count(self, text: str) -> int:
        """Tokens of the text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    async def cut(self, text: str, budget: int) -> str:
        """The text up to where its last token within the budget ends."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= budget else text[: offsets[budget - 1][1] if budget else 0]


TOKENIZERS: Final[dict[str, Callable[[HttpJson], Tokenizer]]] = {
    "vllm": lambda http: EndpointTokenizer(http, "/tokenize", "prompt", "/detokenize", "prompt"),
    "llama.cpp": lambda http: EndpointTokenizer(
        http, "/tokenize", "content", "/detokenize", "content"
    ),
    "llama-cpp-python": lambda http: EndpointTokenizer(
        http, "/extras/tokenize", "input", "/extras/detokenize", "text"
    ),
    "tgi": TgiTokenizer,
}
"""The endpoints of each kind of server."""


def _field(answer: Any, name: str, path: str, kind: type[Kind]) -> Kind:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise ServingError("protocol", f"{path} answers without {name!r}; needed for tokens")
    return value
