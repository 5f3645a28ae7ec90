"""``s2l dataset export``"""

from pathlib import Path

import click

from s2l.named_trace import opened_trace
from s2l.parameters import TOKENIZER
from s2l.progress import bar, say
from s2l.workloads.formats.base import ExportOptions
from s2l.workloads.formats.exporting import export_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.formats.stream2llm_anns import ARRIVALS
from s2l.workloads.plural import counted
from s2l.workloads.token_counter import token_counter


@click.command(name="export")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("trace", required=False)
@click.option("--format", "fmt", type=click.Choice(list(FORMATS)), required=True)
@click.option("--tokenizer", type=TOKENIZER, help="Counts tokens where the trace does not say.")
@click.option(
    "--arrival", type=click.Choice(ARRIVALS), help="Where in its window an update arrives."
)
def export_dataset(
    out: Path, trace: str | None, fmt: str, tokenizer: Path | None, arrival: str | None
) -> None:
    """Write TRACE in another format to the new file or folder OUT."""
    opened = opened_trace(trace)
    counter = token_counter(tokenizer)
    with bar("writing", opened.manifest.counts.finished_queries) as shown:
        options = ExportOptions(counter, arrival, lambda done: shown.advance())
        queries = export_trace(opened, FORMATS[fmt], out, options)
    say(f"{out}: {counted(queries, 'query', 'queries')} as {fmt}")
    say(f"not carried: {FORMATS[fmt].loses}")
