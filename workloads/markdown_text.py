"""Text of others in Markdown: it stays text."""

import re
from typing import Final

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_TICKS: Final = re.compile(r"`+")


def line(text: str) -> str:
    """The text on one line, with nothing in it that Markdown or HTML reads as markup, nor as the
    end of a table's cell."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def code(text: str) -> str:
    """The text on one line as code, between more backticks than it has in a row."""
    plain = " ".join(text.split())
    fence = "`" * (1 + max(map(len, _TICKS.findall(plain)), default=0))
    return f"{fence} {plain} {fence}" if "`" in plain else f"{fence}{plain}{fence}"
