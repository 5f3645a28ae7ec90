"""Text that any file, terminal and encoder takes."""

import re
from collections.abc import Mapping
from typing import Any, Final

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
# Terminal sequences (ECMA-48, 5.4 and 8.3.89) go whole. What has no end, or is longer than colours,
# titles and addresses make them, is text after a stray start, which alone goes.
_CONTROLS: Final = re.compile(
    r"\x1b(?:\[[0-?]{0,64}+[ -/]{0,4}+[@-~]|\][^\x00-\x1f\x7f-\x9f]{0,2000}+(?:\x07|\x1b\\|\x9c))?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone ones replaced by U+FFFD."""
    if _SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def readable(text: str) -> str:
    """Well-formed, without control characters other than tab and line ends."""
    return well_formed(_CONTROLS.sub("", text))


def one_line(text: str, most: int) -> str:
    """Readable, in one line, of at most ``most`` characters."""
    return " ".join(readable(text[: most * 4]).split())[:most]


def well_formed_meta(value: Any) -> Any:
    """JSON-like data with all its strings well-formed; the same object where nothing is wrong."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {well_formed(str(key)): well_formed_meta(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [well_formed_meta(item) for item in value]
    return value
