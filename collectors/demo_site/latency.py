"""How slow the demo site is: a fixed latency for every address, shaped like a real crawl."""

import hashlib
import math
from dataclasses import dataclass
from typing import Final

_SEARCH_LEAST_S: Final = 1.0
_SEARCH_MEAN_EXTRA_S: Final = 0.8
_PAGE_SCALE_S: Final = 4.0
_PAGE_SHAPE: Final = 1.5
_PAGE_MOST_S: Final = 40.0
_FIRST_BYTE_SHARE: Final = (0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Latency:
    """When the parts of one response are due, in seconds after its request.

    ``pieces_s`` has an entry for each piece of the body, the last being when it is complete.
    """

    first_byte_s: float
    pieces_s: tuple[float, ...]
    fails: bool = False

    @property
    def total_s(self) -> float:
        """From the request to the last byte."""
        return self.pieces_s[-1]


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Latencies as a pure function of the seed and the address.

    Searches take 1 s plus an exponential of mean 0.8 s, pages a Weibull time (scale 4 s, shape
    1.5). With seven pages fetched at once this has the shape of the crawl published with
    Stream2LLM (MLSys 2026): gaps between arrivals of median 0.70 s, mean 1.05 s, p95 3.1 s and
    p99 5.3 s; retrievals of 9 to 10 s.

    ``speed`` divides every time. ``failure_rate`` is the share of pages that answer with 503.
    """

    seed: int = 0
    speed: float = 1.0
    failure_rate: float = 0.0

    def __post_init__(self) -> None:
        if not (self.speed > 0 and math.isfinite(self.speed)):
            raise ValueError(f"speed is {self.speed}: give a number above 0, such as 4")
        if not 0 <= self.failure_rate <= 1:
            raise ValueError(f"failure rate is {self.failure_rate}: give a share from 0 to 1")

    def search(self, target: str) -> Latency:
        """The latency of a search; ``target`` is its path and query."""
        extra_s = -_SEARCH_MEAN_EXTRA_S * math.log(1 - self._uniform("search", target))
        return self._split("search", target, _SEARCH_LEAST_S + extra_s, fails=False)

    def page(self, target: str) -> Latency:
        """The latency of a page; ``target`` is its path and query."""
        deviate = -math.log(1 - self._uniform("page", target))
        total_s = min(_PAGE_SCALE_S * deviate ** (1 / _PAGE_SHAPE), _PAGE_MOST_S)
        fails = self._uniform("fails", target) < self.failure_rate
        return self._split("page", target, total_s, fails=fails)

    def _split(self, kind: str, target: str, total_s: float, *, fails: bool) -> Latency:
        """Spread a response over its first byte and two or three evenly spaced pieces."""
        least, most = _FIRST_BYTE_SHARE
        first_s = total_s * (least + (most - least) * self._uniform(f"{kind} first byte", target))
        n = 2 + (self._uniform(f"{kind} pieces", target) < 0.5)
        pieces_s = [first_s + (total_s - first_s) * (i + 1) / n for i in range(n - 1)]
        scaled = tuple(at_s / self.speed for at_s in (*pieces_s, total_s))
        return Latency(first_s / self.speed, scaled, fails)

    def _uniform(self, *key: str) -> float:
        """A number in [0, 1) that follows from the seed and the key, on every machine."""
        text = "\n".join((str(self.seed), *key))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
