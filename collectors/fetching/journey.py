"""What is known of a fetch while it is under way."""

from collections.abc import Collection
from dataclasses import dataclass, field

from s2l.collectors.fetching.page import NowUs


@dataclass(slots=True)
class Journey:
    """One fetch, from address to address: ``left_s`` of its time are left, the others are sums."""

    now_us: NowUs
    mimes: Collection[str] | None
    left_s: float
    wait_us: int = 0
    dns_us: int = 0
    connect_us: int = 0
    redirects: list[str] = field(default_factory=list)

    def meta(self) -> dict[str, object]:
        """What a failed fetch's row says."""
        found = {"wait_us": self.wait_us, "redirects": list(self.redirects)}
        return {name: value for name, value in found.items() if value}
