"""Reads a body as it comes, decompressed, up to its limit."""

from typing import Final

import aiohttp

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.content_coding import decoder
from s2l.collectors.fetching.deadline import Deadline
from s2l.collectors.fetching.limits import FetchLimits

_CODING: Final = "Content-Encoding"


async def read_body(
    response: aiohttp.ClientResponse, limits: FetchLimits, deadline: Deadline
) -> bytes:
    """All of the body; with ``cut_off``, as much as the limit allows.

    Never holds more than the limit and one piece.

    Raises:
        Failure: ``too_large``; also by Content-Length before anything is read.
        CodingError: it cannot be decompressed.
    """
    most = limits.max_bytes
    if (response.content_length or 0) > most and not limits.cut_off:
        raise _too_large(most)
    coding = decoder(response.headers.get(_CODING, ""))
    body, received = bytearray(), 0
    deadline.more_came()
    async for piece in response.content.iter_any():
        received += len(piece)
        body += coding.feed(piece, most - len(body))
        if max(received, len(body)) > most:
            if limits.cut_off:
                return bytes(body[:most])
            raise _too_large(most)
        deadline.more_came()
    if received:
        coding.finish()
    return bytes(body)


def _too_large(most: int) -> Failure:
    return Failure(failure.TOO_LARGE, f"more than {most} bytes")
