"""What ``s2l collect crawl`` was asked for: recorded in the trace, and read back to resume it."""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.page_reader import BrowserMode
from s2l.collectors.politeness.manners import Manners, RetryPolicy
from s2l.collectors.searching.links import LinkBudget
from s2l.collectors.searching.registry import SearchSettings
from s2l.collectors.searching.shown_address import HIDDEN, shown_address
from s2l.scale import Scale

DEMO = "demo site"
"""What ``search_urls`` says of the demo site, whose address is new every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions:
    """The options as given; None is left to the settings that they are for.

    ``site_port`` is where the demo site was, so that a resumed crawl has the same addresses.
    ``own_site``: the sites are the user's own, as the demo site is: no manners are needed.
    ``workers`` share the requests that the manners allow.
    """

    search: str = "site"
    search_urls: tuple[str, ...] = (DEMO,)
    hits: int = 7
    concurrency: int = 8
    speed: float = 1.0
    seed: int = 0
    site_port: int | None = None
    depth: int | None = None
    pages: int | None = None
    hosts: int | None = None
    own_site: bool = False
    allow_private: bool = False
    contact: str | None = None
    requests: int | None = None
    per_site: int | None = None
    delay_s: float | None = None
    attempts: int | None = None
    timeout_s: float | None = None
    max_bytes: int | None = None
    max_redirects: int | None = None
    browser: str = "never"
    no_sandbox: bool = False
    cache: str | None = None
    fresh_s: float | None = None
    workers: int = 1

    @property
    def is_demo(self) -> bool:
        """Whether the demo site is crawled."""
        return self.search_urls == (DEMO,)

    def search_settings(self) -> SearchSettings:
        """For the search provider. Raises click.UsageError on a budget that cannot be."""
        budget = _changed(LinkBudget(), depth=self.depth, pages=self.pages, hosts=self.hosts)
        return SearchSettings(() if self.is_demo else self.search_urls, budget)

    def crawl_settings(self) -> CrawlSettings:
        """For what fetches the pages. Raises click.UsageError on a value that cannot be."""
        own = self.is_demo or self.own_site
        settings = CrawlSettings.at_home() if own else CrawlSettings()
        manners: Manners = _changed(
            settings.manners,
            contact=self.contact,
            concurrency=self.requests,
            per_site=self.per_site,
            delay_s=self.delay_s,
            retry=self._retry(settings.manners.retry),
        )
        manners = self._shared(manners)
        limits: FetchLimits = _changed(
            settings.limits,
            total_s=self.timeout_s,
            max_bytes=self.max_bytes,
            max_redirects=self.max_redirects,
        )
        return replace(
            settings,
            limits=limits,
            manners=manners,
            allow_private=own or self.allow_private,
            browser=BrowserMode(self.browser),
            allow_no_sandbox=self.no_sandbox,
            cache=Path(self.cache) if self.cache else None,
            fresh_s=self.fresh_s,
        )

    def _shared(self, manners: Manners) -> Manners:
        scale = Scale(self.workers)
        scale.check_limit("--requests", manners.concurrency)
        scale.check_limit("--per-site", manners.per_site)
        return replace(manners, crawls=self.workers)

    def _retry(self, policy: RetryPolicy) -> RetryPolicy:
        changed: RetryPolicy = _changed(policy, attempts=self.attempts)
        return changed

    @property
    def shown(self) -> "CrawlOptions":
        """As others may see them: without keys in addresses and paths of this machine."""
        return replace(
            self,
            search_urls=tuple(map(shown_address, self.search_urls)),
            cache=HIDDEN if self.cache else None,
        )

    @property
    def hides_something(self) -> bool:
        """Whether a crawl cannot be resumed with what is recorded."""
        return self.shown != self or HIDDEN in f"{self.cache}{self.search_urls}"

    def recorded(self) -> dict[str, Any]:
        """What was given, for the manifest."""
        always = ("search", "search_urls", "hits", "concurrency")
        unset = {field.name: field.default for field in fields(self)}
        given = asdict(self.shown)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if name in always or value != unset[name]
        }

    @classmethod
    def from_recorded(cls, options: dict[str, Any], path: Path) -> "CrawlOptions":
        """The options of the capture in ``path``.

        Raises:
            click.UsageError: they are not those of a crawl.
        """
        try:
            return msgspec.convert(options, cls)
        except msgspec.ValidationError as error:
            raise click.UsageError(f"{path}: not a crawl that can be resumed: {error}") from None


def _changed(settings: Any, **values: Any) -> Any:
    """``settings`` with those values that are not None."""
    try:
        return replace(settings, **{k: v for k, v in values.items() if v is not None})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
