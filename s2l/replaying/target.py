"""The server that is measured: the one that was named, or an engine that is started for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from s2l.engine import api_key, embedded_server, model_to_serve
from s2l.serving_adapter.adapters import ADAPTERS, detect
from s2l.serving_adapter.base import ServingAdapter

AUTO: Final = "auto"
OPENAI: Final = "openai"


@dataclass(frozen=True, slots=True)
class Target:
    """``url`` is None for the embedded engine. ``api``, ``model``, ``tokenizer`` and
    ``connections`` are for OpenAI-compatible servers."""

    url: str | None = None
    adapter: str = AUTO
    api: str = AUTO
    model: str | None = None
    tokenizer: Path | None = None
    connections: str = "reuse"

    def check(self) -> None:
        """Raises click.UsageError for what cannot be, before anything is started."""
        if self.url is None and self.adapter == OPENAI:
            raise click.UsageError("--adapter openai needs --target, a running server")
        if self.adapter != "realtime" and self.url is not None:
            return
        for option in self.openai_options():
            raise click.UsageError(f"{option} is for OpenAI-compatible servers (--adapter openai)")

    def openai_options(self) -> list[str]:
        """Those that were given of the options for OpenAI-compatible servers."""
        given = {
            "--api": self.api != AUTO,
            "--model": self.model is not None,
            "--tokenizer": self.tokenizer is not None,
            "--connections": self.connections != "reuse",
        }
        return [option for option, is_given in given.items() if is_given]


async def adapter_for(url: str, target: Target) -> ServingAdapter:
    """A client for the server at this address. Raises what ``adapter_choice`` does."""
    name, settings = await adapter_choice(url, target)
    return ADAPTERS[name](url, **settings)


async def adapter_choice(url: str, target: Target) -> tuple[str, dict[str, Any]]:
    """The adapter for the server at this address, and what it is made with; the server is asked
    what it speaks where that is to be found out.

    Raises:
        ServingError: it speaks nothing that we do. click.UsageError: an option does not fit it.
    """
    name = target.adapter
    if name == AUTO:
        name = "realtime" if target.url is None else await detect(url, api_key())
    given: dict[str, Any] = {"api_key": api_key()}
    if name == OPENAI:
        given |= {
            "api": target.api,
            "model": target.model,
            "tokenizer_path": target.tokenizer,
            "connections": target.connections,
        }
    elif unused := target.openai_options():
        raise click.UsageError(f"{unused[0]}: {url} is a {name} server; add --adapter openai")
    return name, given


@asynccontextmanager
async def server_at(url: str | None) -> AsyncIterator[str]:
    """The address of the server, or of an engine that is started for it."""
    if url is not None:
        yield url
        return
    model = await asyncio.to_thread(model_to_serve, None)
    async with embedded_server(model) as server:
        yield server.url
