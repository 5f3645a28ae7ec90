"""The server types that can be measured, by name."""

from collections.abc import Callable

from s2l.serving_adapter.base import ServingAdapter
from s2l.serving_adapter.realtime.client import RealtimeAdapter

ADAPTERS: dict[str, Callable[..., ServingAdapter]] = {"realtime": RealtimeAdapter}
