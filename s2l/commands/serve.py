"""``s2l serve``"""

import click

from s2l.engine import api_key, embedded_server, model_to_serve
from s2l.exits import FAILED
from s2l.foreground import run_until_interrupted
from s2l.progress import say
from s2l.serving_adapter.embedded.model import Model
from s2l.serving_adapter.embedded.server import EngineOptions
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES

DEFAULTS = EngineOptions()
SCHEDULING_POLICIES = ("fcfs", "priority")


def without_options(
    model: str | None, vllm_arguments: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The model, None where what stands in its place is an option of vLLM, and vLLM's arguments."""
    if model is not None and model.startswith("-"):
        return None, (model, *vllm_arguments)
    return model, vllm_arguments


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("model", required=False)
@click.argument("vllm_arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: a free one."
)
@click.option("--dtype", default=DEFAULTS.dtype, show_default=True, help="vLLM's, of the model.")
@click.option(
    "--max-model-len",
    type=click.IntRange(1),
    default=DEFAULTS.max_model_len,
    show_default=True,
    help="Longest prompt and answer together, in tokens.",
)
@click.option(
    "--kv-cache-gib",
    type=click.IntRange(1),
    default=DEFAULTS.kv_cache_gib,
    show_default=True,
    help="Memory for the KV cache, of vLLM on CPUs.",
)
@click.option(
    "--prefill",
    type=click.Choice(list(PREFILL_MODES)),
    default=DEFAULTS.prefill,
    show_default=True,
    help="How context is prefilled while more of it may come: by engine sessions, by requests that "
    "warm the prefix cache, or by whichever there is room for.",
)
@click.option(
    "--scheduling-policy",
    type=click.Choice(SCHEDULING_POLICIES),
    default=DEFAULTS.scheduling_policy,
    show_default=True,
    help="vLLM's; with priority, early prefill yields to whatever can be answered.",
)
def serve(
    model: str | None,
    vllm_arguments: tuple[str, ...],
    host: str,
    port: int,
    dtype: str,
    max_model_len: int,
    kv_cache_gib: int,
    prefill: str,
    scheduling_policy: str,
) -> int:
    """Start stock vLLM with the Realtime endpoint, until Ctrl-C.

    MODEL is a folder or a Hugging Face name; without it, the packaged small model. What comes
    after it is handed to vLLM. Requests need the key in S2L_API_KEY where that is set.
    """
    model, vllm_arguments = without_options(model, vllm_arguments)
    options = EngineOptions(
        host=host,
        port=port,
        dtype=dtype,
        max_model_len=max_model_len,
        kv_cache_gib=kv_cache_gib,
        api_key=api_key(),
        prefill=prefill,
        scheduling_policy=scheduling_policy,
        extra=vllm_arguments,
    )
    return run_until_interrupted(_serve(model_to_serve(model), options))


async def _serve(model: Model, options: EngineOptions) -> int:
    async with embedded_server(model, options) as server:
        say(f"{model.served_name} at {server.url}  (log: {server.log_path}; Ctrl-C stops it)")
        code = await server.wait()
        say(f"the engine ended with exit code {code}; see {server.log_path}")
        return FAILED
