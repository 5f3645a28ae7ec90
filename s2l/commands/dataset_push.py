"""``s2l dataset push``"""

from pathlib import Path

import click
import msgspec

from s2l.named_trace import opened_trace
from s2l.parameters import TOKENIZER
from s2l.progress import say
from s2l.workloads.sharing.address import HubAddress, parse_address
from s2l.workloads.sharing.packaging import packaged
from s2l.workloads.sharing.pushing import push
from s2l.workloads.token_counter import token_counter


@click.command(name="push")
@click.argument("target")
@click.argument("trace", required=False)
@click.option("--private", is_flag=True, help="Of a new dataset of the Hub.")
@click.option("--tokenizer", type=TOKENIZER, help="Counts the card's tokens; else words.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def push_trace(
    target: str, trace: str | None, private: bool, tokenizer: Path | None, as_json: bool
) -> None:
    """Publish TRACE at TARGET, whole or not at all, and print the address that pins it.

    TARGET is hf:user/name or hf:user/name@branch (token in HF_TOKEN), https://host/name.tar (one
    PUT; bearer token in S2L_PUSH_TOKEN), or a new folder.
    """
    address = parse_address(target)
    source, counter = opened_trace(trace), token_counter(tokenizer)
    repo = address.repo if isinstance(address, HubAddress) else None
    with packaged(source, counter=counter, repo=repo) as ready:
        pinned = push(ready, address, private=private)
        digest = ready.sha256
    say(f"published: {pinned}")
    if as_json:
        click.echo(msgspec.json.encode({"address": pinned, "manifest_sha256": digest}))
