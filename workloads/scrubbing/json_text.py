"""The texts inside JSON values."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed, keys left as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_texts(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [map_texts(one, change) for one in value]
    return value


def texts_in(value: Any) -> Iterator[str]:
    """Every text in the value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts_in(one)
