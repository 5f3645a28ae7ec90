"""``s2l dataset rm``"""

from collections.abc import Iterable

import click

from s2l.progress import say
from s2l.workloads.sharing.cache import Cached, TraceCache


@click.command(name="rm")
@click.argument("addresses", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of them, and parts of some.")
def remove_cached(addresses: tuple[str, ...], everything: bool) -> None:
    """Remove pulled traces, by the addresses that list shows; without revision, all of them."""
    if everything == bool(addresses):
        raise click.UsageError("name addresses, or give --all")
    cache = TraceCache()
    if everything:
        _say_removed(cache.clear())
    for address in addresses:
        _say_removed(cache.remove(address))


def _say_removed(traces: Iterable[Cached]) -> None:
    for one in traces:
        say(f"removed: {one.address}")
