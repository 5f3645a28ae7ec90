"""The ways in which context is prefilled before its prompt is complete."""

from dataclasses import dataclass
from typing import Final

PREFILL_VARIABLE: Final = "S2L_PREFILL"
"""Environment variable that names the mode of a server."""


@dataclass(frozen=True, slots=True)
class PrefillMode:
    """``session_share``: how much of the KV cache open sessions may fill together. ``warms``:
    whether contexts beyond that are prefilled by ordinary requests for one token, whose blocks stay
    in the prefix cache; otherwise they are held back."""

    session_share: float
    warms: bool


PREFILL_MODES: Final = {
    "session": PrefillMode(1.0, warms=False),
    "prefix": PrefillMode(0.0, warms=True),
    "auto": PrefillMode(0.75, warms=True),
}
"""``session``: one engine session per prompt, fed chunk by chunk; evicted when a complete prompt
needs its room. ``prefix``: ordinary requests, which hold nothing between chunks. ``auto``: sessions
while there is room, prefix beyond that, nothing when the cache is full."""


def prefill_mode(name: str) -> PrefillMode:
    """The mode of that name. Raises ValueError naming the choices."""
    if name not in PREFILL_MODES:
        raise ValueError(f"unknown prefill mode {name!r}; choose one of {', '.join(PREFILL_MODES)}")
    return PREFILL_MODES[name]
