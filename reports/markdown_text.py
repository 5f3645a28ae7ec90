"""Text of others in Markdown: it stays text."""

import re
from typing import Final

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def line(text: str) -> str:
    """The text on one line, with nothing in it that Markdown or HTML reads as markup, nor as the
    end of a table's cell."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")
