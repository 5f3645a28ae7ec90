"""Keys that never show."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn
from urllib.parse import quote, quote_plus

from s2l.collectors.searching.base import MissingKey, SearchHit
from s2l.collectors.searching.shown_address import HIDDEN

_KEY: Final = re.compile(r"[!-~]{4,512}")  # visible ASCII: all that a header may carry


class Secret:
    """A key that shows in no repr, string, format, pickle or traceback; only ``reveal`` gives it.

    Whoever sends it hands every text that comes back through ``redact``: a server may echo it.
    """

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value

    @classmethod
    def from_environment(cls, name: str, environ: Mapping[str, str] | None = None) -> "Secret":
        """The key in the environment variable ``name``.

        Raises:
            MissingKey: there is none, or what is there cannot be a key.
        """
        value = (os.environ if environ is None else environ).get(name, "").strip()
        if not value:
            raise MissingKey(f"no key: set the environment variable {name}")
        if not _KEY.fullmatch(value):
            raise MissingKey(f"{name} cannot be a key: 4 to 512 visible ASCII characters, no blank")
        return cls(value)

    def reveal(self) -> str:
        """The key itself, to be sent and not to be kept."""
        return self.__value

    def redact(self, text: str) -> str:
        """``text`` with every spelling of the key in it hidden."""
        value = self.__value
        for spelling in {value, quote(value, safe=""), quote(value), quote_plus(value)}:
            text = re.sub(re.escape(spelling), HIDDEN, text, flags=re.IGNORECASE)
        return text

    def redact_hits(self, hits: Iterable[SearchHit]) -> list[SearchHit]:
        """The hits without the key: as they will be written, for cleaning could bring it back."""
        shown = self.redact
        return [SearchHit(shown(hit.url), shown(hit.title), shown(hit.snippet)) for hit in hits]

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not to be copied into a file or another process")
