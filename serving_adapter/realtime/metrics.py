"""What a Realtime server counts of itself, for its ``/metrics``."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

SESSIONS: Final = Gauge(
    "s2l_sessions", "Open Realtime sessions", ["state"], multiprocess_mode="livesum"
)
"""``state``: ``open`` (context may still come), ``answering``, ``idle`` (answered)."""

CHUNKS: Final = Counter("s2l_chunks", "Chunks of context handed to the engine")
MERGED: Final = Counter("s2l_merged_items", "Items that were prefilled together with others")
PREFILLED: Final = Counter("s2l_prefilled_tokens", "Prompt tokens handed to the engine")
REUSED: Final = Counter("s2l_reused_tokens", "Of these, tokens found in the prefix cache")
INVALIDATED: Final = Counter(
    "s2l_invalidated_tokens", "Tokens prefilled and thrown away because context was replaced"
)
WATCHDOG: Final = Counter("s2l_watchdog_actions", "Sessions moved to make room", ["action"])
LIMITS: Final = Counter("s2l_limits_hit", "Sessions or events refused by a limit", ["limit"])
"""``limit``: a field of ``limits.Limits``, ``max_model_len``, or ``kv_cache`` (too many prompts
wait for it)."""

ITEM_TO_PREFILLED: Final = Histogram(
    "s2l_item_to_prefilled_seconds",
    "Time from an item's arrival until the engine holds it",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
