"""The settings of a Realtime session and of its responses, as they stand on the wire.

All of the API's fields are known here; those that text sessions of this server cannot serve are
refused unless their value changes nothing.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from s2l.serving_adapter.realtime.engine import EngineInfo

MaxOutputTokens = Annotated[int, Meta(ge=1, le=2**31)] | Literal["inf"]
Temperature = Annotated[float, Meta(ge=0, le=2)]
ItemId = Annotated[str, Meta(min_length=1, max_length=64)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
    Meta(max_length=16),
]


class RealtimeError(Exception):
    """An event that cannot be served, in the API's error form."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.type = kind


def not_supported(what: str, param: str) -> RealtimeError:
    """The refusal of what the API has and this server has not."""
    return RealtimeError("not_supported", f"this server does not support {what}", param=param)


class Extension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may ask for beyond the API, in ``session.update``; None is what it did not."""

    cache_salt: Annotated[str, Meta(max_length=512)] | None = None
    """Sessions with different salts share no prefix cache."""
    report: bool | None = None
    """Send ``s2l.prefilled`` events and token counts with deltas and usage."""
    temperature: Temperature | None = None


class Item(msgspec.Struct, frozen=True):
    """One item of a conversation, or a reference to one; its fields are checked by its type."""

    type: str = "message"
    role: str = "user"
    content: list["Content"] = []
    id: ItemId | None = None


class Content(msgspec.Struct, frozen=True):
    """One part of a message."""

    type: str
    text: str | None = None


class _Shared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What sessions and responses have in common. ``temperature`` is that of the API's beta."""

    instructions: str | None = None
    output_modalities: list[str] | None = None
    max_output_tokens: MaxOutputTokens | None = None
    temperature: Temperature | None = None
    audio: Any = None
    parallel_tool_calls: Any = None
    prompt: Any = None
    reasoning: Any = None
    tool_choice: Any = None
    tools: Any = None


class SessionConfig(_Shared, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of ``session.update``."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    include: Any = None
    tracing: Any = None
    truncation: Any = None
    s2l: Extension | None = None

    def updated(self, new: "SessionConfig") -> "SessionConfig":
        """These settings with those that the update gives."""
        changes = _given(new)
        if self.s2l is not None and new.s2l is not None:
            changes["s2l"] = msgspec.structs.replace(self.s2l, **_given(new.s2l))
        return msgspec.structs.replace(self, **changes)

    def check(self, info: EngineInfo) -> None:
        """Raises RealtimeError for what this server, which has this engine, cannot do."""
        _refuse_unsupported(self, "session")
        if self.model is not None and not info.serves(self.model):
            message = f"this server serves {info.model!r}, not {self.model[:100]!r}"
            raise RealtimeError("model_not_found", message, param="session.model")


class ResponseConfig(_Shared, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of ``response.create``."""

    conversation: str | None = None
    input: list[Item] | None = None
    metadata: Metadata | None = None

    def check(self) -> None:
        """Raises RealtimeError for what this server cannot do."""
        _refuse_unsupported(self, "response")
        if self.conversation not in (None, "auto", "none"):
            raise RealtimeError(
                "invalid_value",
                f"invalid value: {self.conversation!r}; supported values are 'auto' and 'none'",
                param="response.conversation",
            )


_HARMLESS: Final[dict[str, tuple[Any, ...]]] = {
    "output_modalities": (["text"],),
    "audio": (),
    "include": ([],),
    "parallel_tool_calls": (True, False),
    "prompt": (),
    "reasoning": (),
    "tool_choice": ("auto", "none"),
    "tools": ([],),
    "tracing": (),
    "truncation": ("disabled",),
}
"""Values that ask for nothing beyond what is done anyway; those of other fields are served."""


def _given(settings: msgspec.Struct) -> dict[str, Any]:
    fields = settings.__struct_fields__
    return {name: value for name in fields if (value := getattr(settings, name)) is not None}


def _refuse_unsupported(config: _Shared, param: str) -> None:
    for name, harmless in _HARMLESS.items():
        value = getattr(config, name, None)
        if value is not None and value not in harmless:
            only = f" other than {' or '.join(map(repr, harmless))}" if harmless else ""
            raise not_supported(f"{param}.{name}{only}", f"{param}.{name}")
