"""``s2l dataset rm``"""

import click

from s2l.progress import say
from s2l.workloads.sharing.cache import TraceCache


@click.command(name="rm")
@click.argument("addresses", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of them, and parts of some.")
def remove_cached(addresses: tuple[str, ...], everything: bool) -> None:
    """Remove pulled traces, by the addresses that list shows; without revision, all of them."""
    if everything == bool(addresses):
        raise click.UsageError("name addresses, or give --all")
    cache = TraceCache()
    if everything:
        removed = cache.clear()
    else:
        removed = [one for address in addresses for one in cache.remove(address)]
    for one in removed:
        say(f"removed: {one.address}")
