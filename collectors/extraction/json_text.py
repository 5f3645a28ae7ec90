"""JSON as text."""

import json
from collections.abc import Iterator
from typing import Any

from s2l.collectors.extraction.charset import decode
from s2l.collectors.extraction.extracted import Extracted


def json_text(body: bytes, charset: str | None) -> Extracted:
    """A line for each value, after the name that it has there, in the order of the file.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    decoded = decode(body, charset)
    value = json.loads(decoded.text)
    title = value.get("title") or value.get("name") if isinstance(value, dict) else None
    return Extracted(
        title.strip() if isinstance(title, str) else "",
        "\n".join(_lines(value, "")).strip(),
        decoded.meta(),
    )


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name)
    else:
        said = value if isinstance(value, str) else json.dumps(value)
        yield f"{name}: {said}" if name else said
