"""The fields of a Realtime server's events that a client needs; others are skipped."""

import msgspec

from s2l.serving_adapter.base import ServingError, Usage


class Reported(msgspec.Struct, frozen=True):
    """The extension's fields of a server event."""

    tokens: int | None = None


class Problem(msgspec.Struct, frozen=True):
    """The API's error object."""

    message: str = ""
    code: str | None = None
    type: str | None = None


class CachedDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class OwnUsage(msgspec.Struct, frozen=True):
    """The extension's counts."""

    invalidated_tokens: int | None = None
    discarded_tokens: int | None = None
    found_tokens: int | None = None


class UsageObject(msgspec.Struct, frozen=True):
    s2l: OwnUsage | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: CachedDetails | None = None
    output_token_details: OutputDetails | None = None


class StatusDetails(msgspec.Struct, frozen=True):
    reason: str | None = None
    error: Problem | None = None


class ResponseObject(msgspec.Struct, frozen=True):
    status: str = ""
    status_details: StatusDetails | None = None
    usage: UsageObject | None = None


class ServerFrame(msgspec.Struct, frozen=True):
    """The fields of server events that matter here; others are skipped while decoding."""

    type: str
    delta: str = ""
    item_ids: list[str] = []
    tokens: int | None = None
    s2l: Reported | None = None
    error: Problem | None = None
    response: ResponseObject | None = None


_decoder = msgspec.json.Decoder(ServerFrame)


def decode_frame(data: bytes) -> ServerFrame:
    """Read one frame of a server. Raises ServingError when it is no event."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise ServingError("protocol", f"not a Realtime event: {error}") from None


def finish_reason(response: ResponseObject) -> str:
    """Why the answer ended. Raises ServingError when the response failed."""
    details = response.status_details or StatusDetails()
    if response.status not in ("completed", "incomplete"):
        message = details.error.message if details.error else ""
        raise ServingError("server_error", f"response {response.status}: {message}")
    return "length" if details.reason == "max_output_tokens" else (details.reason or "stop")


def usage(response: ResponseObject) -> Usage:
    """Tokens as the server counted them."""
    counted = response.usage or UsageObject()
    own = counted.s2l or OwnUsage()
    inputs, outputs = counted.input_token_details, counted.output_token_details
    return Usage(
        prompt_tokens=counted.input_tokens,
        cached_tokens=inputs.cached_tokens if inputs else None,
        output_tokens=counted.output_tokens,
        invalidated_tokens=own.invalidated_tokens,
        found_tokens=own.found_tokens,
        discarded_tokens=own.discarded_tokens,
        reasoning_tokens=outputs.reasoning_tokens if outputs else None,
    )
