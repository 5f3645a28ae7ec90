"""The server types that can be measured, by name."""

from collections.abc import Callable

from s2l.serving_adapter.base import ServingAdapter, ServingError
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.serving_adapter.realtime.client import RealtimeAdapter

ADAPTERS: dict[str, Callable[..., ServingAdapter]] = {
    "realtime": RealtimeAdapter,
    "openai": OpenAiAdapter,
}


async def detect(url: str, api_key: str | None) -> str:
    """The name of the first adapter that the server at this address speaks with.

    Raises:
        ServingError: it speaks with none; or nothing answers there, or not with this key.
    """
    said = []
    for name, adapter_of in ADAPTERS.items():
        try:
            async with adapter_of(url, api_key=api_key) as adapter:
                await adapter.probe()
                return name
        except ServingError as error:
            if error.error_type in ("refused", "connect", "connect_timeout"):
                raise
            said.append((name, error))
    refusal = next((error for _, error in said if _is_about_the_key(error)), None)
    if refusal is not None:
        raise refusal
    reasons = "; ".join(f"{name}: {error}" for name, error in said)
    text = f"{url} speaks neither the Realtime API nor that of /v1/models ({reasons})"
    raise ServingError("protocol", text)


def _is_about_the_key(error: ServingError) -> bool:
    return error.error_type == "rejected" and ("key" in str(error) or "HTTP 401" in str(error))
