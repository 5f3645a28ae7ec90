"""``s2l dataset pull``"""

import click
import msgspec

from s2l.named_trace import pulled


@click.command(name="pull")
@click.argument("address")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def pull_trace(address: str, as_json: bool) -> None:
    """Fetch a trace into the cache and check all of it, in a process of its own; print its folder.

    ADDRESS is hf:user/name@revision, https://host/folder/, https://host/name.tar (each may end
    with #sha256=...), an archive, or a folder. What was fetched before is not fetched again.
    """
    found = pulled(address)
    if as_json:
        click.echo(msgspec.json.encode({"path": str(found.path), "address": found.address}))
    else:
        click.echo(str(found.path))
