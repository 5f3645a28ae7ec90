"""Data inside a page that can be nothing but data."""

import json
from typing import Any


def inert_json(value: Any) -> str:
    """JSON that stays data inside a script element, whatever text is in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
