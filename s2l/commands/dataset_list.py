"""``s2l dataset list``"""

import click
import msgspec

from s2l.progress import say
from s2l.workloads.sharing.cache import TraceCache


@click.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def list_cached(as_json: bool) -> None:
    """Traces that were pulled to this machine."""
    cache = TraceCache()
    found = cache.entries()
    if as_json:
        click.echo(msgspec.json.encode({"root": str(cache.root), "traces": found}))
        return
    for one in found:
        click.echo(f"{one.bytes / 1e6:>10,.1f} MB  {one.pulled_utc[:10]}  {one.address}")
    say(f"{cache.root}: {len(found)} traces, {sum(one.bytes for one in found) / 1e6:,.1f} MB")
