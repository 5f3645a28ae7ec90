"""How a crawl fetches its pages."""

from dataclasses import dataclass, field
from pathlib import Path

from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.page_reader import BrowserMode
from s2l.collectors.politeness.manners import Manners


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """``allow_private`` may name networks (CIDR) instead of all.

    ``cache`` is a folder for pages that are not to be asked for again, or None; those older than
    ``fresh_s`` are, None: never. ``allow_no_sandbox`` is for root, as whom Chromium has none.
    ``extract_workers`` None: by the number of processors; ``extract_s`` and ``extract_bytes`` are
    what one page may take.
    """

    limits: FetchLimits = field(default_factory=FetchLimits)
    manners: Manners = field(default_factory=Manners)
    allow_private: bool | tuple[str, ...] = False
    cache: Path | None = None
    fresh_s: float | None = None
    browser: BrowserMode = BrowserMode.NEVER
    allow_no_sandbox: bool = False
    extract_workers: int | None = None
    extract_s: float = 20.0
    extract_bytes: int = 1_000_000_000

    @classmethod
    def at_home(cls, extract_workers: int | None = None) -> "CrawlSettings":
        """For a site of one's own on this machine or network, such as the demo site."""
        return cls(manners=Manners.at_home(), allow_private=True, extract_workers=extract_workers)
