"""The mock's ``/metrics``: vLLM's names for what it counts, and this project's own beside them."""

import prometheus_client

from s2l.serving_adapter.mock.backend import Backend

_HELP = {
    "num_requests_running": ("gauge", "Requests in the model"),
    "num_requests_waiting": ("gauge", "Requests that wait for their turn"),
    "kv_cache_usage_perc": ("gauge", "KV cache in use; 1 is all of it"),
    "prefix_cache_queries_total": ("counter", "Prompt tokens looked up in the prefix cache"),
    "prefix_cache_hits_total": ("counter", "Prompt tokens found there"),
    "num_preemptions_total": ("counter", "Requests put back to waiting; here always 0"),
    "prompt_tokens_total": ("counter", "Prompt tokens"),
    "generation_tokens_total": ("counter", "Tokens generated"),
}


def values(backend: Backend) -> dict[str, float]:
    """Each metric by its name without ``vllm:``; Realtime sessions are counted too."""
    scheduler, engine = backend.scheduler, backend.engine
    totals, cache = scheduler.totals, scheduler.cache
    used = cache.used_blocks + cache.blocks(engine.held_tokens)
    return {
        "num_requests_running": scheduler.running + engine.open_runs,
        "num_requests_waiting": len(scheduler.waiting),
        "kv_cache_usage_perc": used / max(1, cache.total_blocks),
        "prefix_cache_queries_total": totals.prefix_queries,
        "prefix_cache_hits_total": totals.prefix_hits,
        "num_preemptions_total": 0,
        "prompt_tokens_total": totals.prompt_tokens + engine.prompt_tokens,
        "generation_tokens_total": totals.output_tokens + engine.output_tokens,
    }


def exposition(backend: Backend) -> bytes:
    """The Prometheus text format."""
    labels = f'{{engine="0",model_name="{backend.engine.info.model}"}}'
    lines = []
    for name, value in values(backend).items():
        kind, text = _HELP[name]
        lines.append(f"# HELP vllm:{name} {text}.\n# TYPE vllm:{name} {kind}\n")
        lines.append(f"vllm:{name}{labels} {float(value)}\n")
    return prometheus_client.generate_latest() + "".join(lines).encode()
