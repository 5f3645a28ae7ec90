"""Addresses as others may see them: without the keys that some have in them."""

import re
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"

_NAMED_SECRET: Final = re.compile(
    r"key(?!word)|token|secret|passw|pwd|signature|credential|auth(?!or(?!i))|session|jwt|hmac"
    r"|(?:^|[^a-z])(?:sig|sid|pass|pin|sign)(?:$|[^a-z])",
    re.I,
)
# So long a run of letters and digits is no word that a reader would miss.
_RANDOM: Final = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{24,}")
_PARTS: Final = re.compile(r"([^/?#]*//)?([^/?#]*@)?([^/?#]*)([^?#]*)(.*)", re.S)
_PLACE: Final = re.compile(r"\{\w+\}")


def shown_address(url: str) -> str:
    """``url`` with the parameters and the parts of its path that look like keys as ``***``.

    A key is known by its parameter's name (``key``, ``access_token``, ``X-Amz-Signature``), or
    looks random. ``{query}`` and the like stay. It need not be an address that can be used.
    """
    parts = _PARTS.fullmatch(url)
    assert parts is not None  # every text is some of these parts
    scheme, user, host, path, rest = (part or "" for part in parts.groups())
    return "".join(
        (
            scheme,
            f"{HIDDEN}@" if user else "",
            host,
            re.sub("[^/]+", _shown, path),
            re.sub("(?<=[?#&])[^#&]+", _shown, rest),
        )
    )


def _shown(piece: re.Match[str]) -> str:
    """A segment or a parameter. Behind a ``;`` there may be more of them: all go together."""
    name, is_named, value = piece[0].partition("=")
    names = [unquote(one.partition("=")[0]) for one in piece[0].split(";")] if is_named else []
    if _PLACE.fullmatch(value) or not (
        any(map(_NAMED_SECRET.search, names)) or _RANDOM.search(unquote(piece[0]))
    ):
        return piece[0]
    return f"{name}={HIDDEN}" if is_named else HIDDEN
