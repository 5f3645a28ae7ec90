"""The embedded engine, as commands start it: which model, and what is said meanwhile."""

import os
from typing import Final

from s2l.progress import say
from s2l.serving_adapter.embedded.model import Model, is_prepared, named, prepare
from s2l.serving_adapter.embedded.server import EmbeddedServer, EngineOptions, check_installed

API_KEY_VARIABLE: Final = "S2L_API_KEY"


def api_key() -> str | None:
    """The key that the server asks for, from the environment."""
    return os.environ.get(API_KEY_VARIABLE)


def model_to_serve(name: str | None) -> Model:
    """The model named, or the packaged one, prepared on first use."""
    check_installed()
    if name is not None:
        return named(name)
    if not is_prepared():
        say("Preparing the packaged model (once, about 20 s) ...")
    return prepare()


def embedded_server(model: Model, options: EngineOptions | None = None) -> EmbeddedServer:
    """The engine, saying on standard error how its start goes on."""
    return EmbeddedServer(model, options, progress=lambda stage: say(f"engine: {stage} ..."))
