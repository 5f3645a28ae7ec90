"""``s2l dataset scrub``"""

from pathlib import Path

import click
import msgspec

from s2l.folders import TRACES, new_folder
from s2l.named_trace import opened_trace
from s2l.progress import bar, say
from s2l.workloads.scrubbing.scrubber import Scrubber, scrub


@click.command(name="scrub")
@click.argument("trace", required=False)
@click.option(
    "--region",
    "regions",
    multiple=True,
    help="Find phone numbers as dialled there (DE, US...; may be repeated); those that begin "
    "with + are always found.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the new trace.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def scrub_trace(
    trace: str | None, regions: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    """Write a copy of TRACE without emails, phone numbers, keys and tokens.

    What was found is told by kind and place, never itself. Detectors miss things: look at what
    you publish.
    """
    source = opened_trace(trace)
    scrubber = Scrubber(regions)
    path = out or new_folder(TRACES, "scrubbed")
    with bar("documents", source.manifest.counts.documents) as shown:
        scrub(source, path, scrubber, lambda done: shown.advance())
    report = scrubber.report()
    for kind, places in report.items():
        for place, n in places.items():
            say(f"{kind:<8} {place:<20} {n:>8,}")
    say(f"{path}: {sum(n for one in report.values() for n in one.values()):,} replaced")
    if as_json:
        click.echo(msgspec.json.encode({"trace": str(path), "found": report}))
