"""What a server's ``/metrics`` page says, under the names of a run's ``server`` table."""

import math
import re
from collections.abc import Iterator
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
        "tgi_batch_current_size",
    ),
    "waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
        "tgi_queue_size",
    ),
    "kv_usage": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "preemptions": (
        "vllm:num_preemptions_total",
        "sglang:num_retracted_requests_total",
        "sglang:num_retracted_reqs_total",
    ),
    "prefix_queries": (
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
    ),
    "prefix_hits": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
    ),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
        "tgi_request_input_length_sum",
    ),
    "output_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
        "tgi_request_generated_tokens_sum",
    ),
}
"""Our name for a metric to what servers call it; of several that a server has, the first counts."""

_SHARES: Final = frozenset({"kv_usage"})
"""Between 0 and 1: of several engines the fullest counts. Everything else is added up."""

_OWN: Final = r"s2l_[a-zA-Z0-9_]*"
_LEFT_OUT: Final = ("_bucket", "_created")
"""Parts of a histogram that would be most of the table, and are in none of our figures."""

_LINE: Final = re.compile(
    rb"^(?:%s)(?:\{.*\})?[ \t].*$"
    % "|".join([*(re.escape(s) for many in SOURCES.values() for s in many), _OWN]).encode(),
    re.MULTILINE,
)
"""Lines that are of use. A page has thousands of others, and parsing them all would take the
interpreter from the event loop that measures."""


def read_metrics(page: bytes) -> dict[str, float]:
    """The values of a page by our names: those of ``SOURCES``, and this project's own ``s2l_...``
    with their labels in braces.

    Raises:
        ValueError: a line is not what Prometheus' text format has.
    """
    found: dict[str, list[float]] = {}
    own: dict[str, float] = {}
    for name, labels, value in _samples(page):
        if name.startswith("s2l_"):
            own[_labelled(name, labels)] = value
        else:
            found.setdefault(name, []).append(value)
    ours = {}
    for name, sources in SOURCES.items():
        values = next((found[source] for source in sources if source in found), None)
        if values is not None:
            ours[name] = max(values) if name in _SHARES else math.fsum(values)
    return ours | own


def _samples(page: bytes) -> Iterator[tuple[str, dict[str, str], float]]:
    lines = b"\n".join(_LINE.findall(page)).decode("utf-8", "replace")
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            if math.isfinite(sample.value) and not sample.name.endswith(_LEFT_OUT):
                yield sample.name, sample.labels, sample.value


def _labelled(name: str, labels: dict[str, str]) -> str:
    if not labels:
        return name
    return f"{name}{{{','.join(f'{key}={value}' for key, value in sorted(labels.items()))}}}"
