"""``s2l dataset stats``"""

from pathlib import Path

import click

from s2l.named_trace import opened_trace
from s2l.parameters import TOKENIZER
from s2l.progress import bar, say
from s2l.workloads.stats.dataset_stats import DatasetStats, characterise, stats_json
from s2l.workloads.stats.stats_table import (
    COLUMNS,
    LABELS,
    distribution_rows,
    other_rows,
    unit_of,
)
from s2l.workloads.token_counter import TokenCounter, token_counter
from s2l.workloads.trace import Trace


@click.command(name="stats")
@click.argument("traces", nargs=-1)
@click.option("--tokenizer", type=TOKENIZER, help="Counts tokens; without it words are counted.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with plots, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def dataset_stats(
    traces: tuple[str, ...], tokenizer: Path | None, html: Path | None, as_json: bool
) -> None:
    """What workloads are like, side by side: counts, gaps, durations, tokens, overlap, bursts."""
    counter = token_counter(tokenizer)
    opened = [opened_trace(name) for name in traces or (None,)]
    found = [_characterised(trace, counter) for trace in opened]
    if html:
        from s2l.reports.dataset_page import write_dataset_page

        write_dataset_page(found, html)
        say(f"page: {html}")
    if as_json:
        click.echo(stats_json(found))
    else:
        _print(found)


def _characterised(trace: Trace, counter: TokenCounter) -> DatasetStats:
    with bar(trace.manifest.name, trace.manifest.counts.queries) as shown:
        return characterise(trace, counter, lambda done: shown.advance())


def _print(found: list[DatasetStats]) -> None:
    width = 2 + max([26, *(len(one.name) for one in found)])
    for key, label in LABELS.items():
        heads = "".join(f"{name:>11}" for name in COLUMNS)
        click.echo(f"\n{label + ', ' + unit_of(found, key):<{width}}{heads}")
        for row in distribution_rows(found, key):
            click.echo(f"{row.label:<{width}}" + "".join(f"{cell:>11}" for cell in row.cells))
    rows = other_rows(found)
    first = max(len(row.label) for row in rows) + 2
    click.echo("\n" + " " * first + "".join(f"{one.name:>{width}}" for one in found))
    for row in rows:
        click.echo(f"{row.label:<{first}}" + "".join(f"{cell:>{width}}" for cell in row.cells))
