"""A fetcher for servers on loopback."""

from s2l.collectors.fetching.fetcher import Fetcher


def private_fetcher() -> Fetcher:
    """A ``Fetcher`` that may connect to private addresses."""
    return Fetcher(allow_private=True)
