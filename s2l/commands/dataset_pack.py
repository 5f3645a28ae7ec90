"""``s2l dataset pack``"""

from pathlib import Path

import click
import msgspec

from s2l.named_trace import opened_trace
from s2l.parameters import TOKENIZER
from s2l.progress import say
from s2l.workloads.sharing.address import ARCHIVES
from s2l.workloads.sharing.archive import write_archive
from s2l.workloads.sharing.packaging import package, packaged
from s2l.workloads.token_counter import token_counter


@click.command(name="pack")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("trace", required=False)
@click.option("--tokenizer", type=TOKENIZER, help="Counts the card's tokens; else words.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def pack_trace(out: Path, trace: str | None, tokenizer: Path | None, as_json: bool) -> None:
    """Write TRACE to OUT, ready to be shared: with card, picture and Croissant metadata.

    OUT is NAME.tar, NAME.tar.gz or NAME.tar.zst, or else a new folder. The same trace gives the
    same bytes.
    """
    source, counter = opened_trace(trace), token_counter(tokenizer)
    if out.name.endswith(ARCHIVES):
        with packaged(source, counter=counter) as ready:
            write_archive(ready.path, ready.manifest, out)
            digest = ready.sha256
    else:
        digest = package(source, out, counter=counter).sha256
    say(f"{out}: packed, sha256 of its manifest {digest}")
    if as_json:
        click.echo(msgspec.json.encode({"out": str(out), "manifest_sha256": digest}))
