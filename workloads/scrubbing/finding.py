"""Something in a text that is not to be shared."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

EMAIL: Final = "email"
PHONE: Final = "phone"
KEY: Final = "key"
TOKEN: Final = "token"


class Finding(NamedTuple):
    """Where it begins and ends, in code points, and of which kind it is; never what it is."""

    start: int
    end: int
    kind: str


def disjoint(findings: Iterable[Finding]) -> Iterator[Finding]:
    """In the order of the text; of those that overlap, one with the kind of the longest."""
    merged: Finding | None = None
    for one in sorted(findings):
        if merged is None:
            merged = one
        elif one.start < merged.end:
            longer = max(merged, one, key=lambda each: each.end - each.start)
            merged = Finding(merged.start, max(merged.end, one.end), longer.kind)
        else:
            yield merged
            merged = one
    if merged is not None:
        yield merged


def replaced(text: str, findings: Iterable[Finding], form: str = "[{}]") -> str:
    """The text with each finding's kind in its place."""
    parts, at = [], 0
    for one in disjoint(findings):
        parts += [text[at : one.start], form.format(one.kind)]
        at = one.end
    return "".join([*parts, text[at:]])
