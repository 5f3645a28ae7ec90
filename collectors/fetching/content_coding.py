"""Decompresses a body piece by piece, never further than it may grow."""

import zlib
from collections.abc import Callable
from typing import Final, Protocol

import brotli

ACCEPTED: Final = "gzip, deflate, br"
"""What a request says it can take."""

_STEP: Final = 65_536
_GZIP_MAGIC: Final = b"\x1f\x8b"


class CodingError(Exception):
    """The body is not what its Content-Encoding says, or that is unknown."""


class Decoder(Protocol):
    """Undoes one content coding."""

    def feed(self, piece: bytes, most: int) -> bytes:
        """Decode one more piece of the body; a result longer than ``most`` is not complete.

        Raises:
            CodingError: the piece is not valid.
        """
        ...

    def finish(self) -> None:
        """Check that the body is complete.

        Raises:
            CodingError: it was cut short.
        """
        ...


class _Identity:
    def feed(self, piece: bytes, most: int) -> bytes:
        return piece

    def finish(self) -> None:
        return


class _Zlib:
    """Gzip, of several members too, and both kinds of deflate."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._stream = zlib.decompressobj(wbits=31) if gzip else None

    def feed(self, piece: bytes, most: int) -> bytes:
        if self._stream is None:
            self._stream = _deflate(piece)
        try:
            out = self._stream.decompress(piece, most + 1)
            while self._gzip and self._stream.eof and len(out) <= most:
                rest = self._stream.unused_data
                if not rest.startswith(_GZIP_MAGIC):
                    break  # what follows the last member says nothing
                self._stream = zlib.decompressobj(wbits=31)
                out += self._stream.decompress(rest, most + 1 - len(out))
        except zlib.error as error:
            raise CodingError(str(error)) from error
        return out

    def finish(self) -> None:
        if self._stream is not None and not self._stream.eof:
            raise CodingError("the compressed body was cut short")


def _deflate(start: bytes) -> "zlib._Decompress":
    """With the zlib wrapper that the standard demands, or bare as some servers send it."""
    wrapped = len(start) > 1 and start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return zlib.decompressobj(wbits=15 if wrapped else -15)


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, piece: bytes, most: int) -> bytes:
        out = bytearray()
        try:
            # In small steps, for its limit is a rough one: what it gives may be twice as much.
            out += self._stream.process(piece, output_buffer_limit=_STEP)
            while len(out) <= most and not self._stream.can_accept_more_data():
                out += self._stream.process(b"", output_buffer_limit=_STEP)
        except brotli.error as error:
            raise CodingError(str(error)) from error
        return bytes(out)

    def finish(self) -> None:
        if not self._stream.is_finished():
            raise CodingError("the compressed body was cut short")


_DECODERS: Final[dict[str, Callable[[], Decoder]]] = {
    "": _Identity,
    "identity": _Identity,
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    "br": _Brotli,
}


def decoder(content_encoding: str) -> Decoder:
    """The decoder for a Content-Encoding header.

    Raises:
        CodingError: it is none that was accepted, or several on top of each other.
    """
    make = _DECODERS.get(content_encoding.strip().lower())
    if make is None:
        raise CodingError(f"content encoding {content_encoding!r}; {ACCEPTED} were accepted")
    return make()
