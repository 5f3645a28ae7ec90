"""A run's summary on a terminal: verdict, headline, then the figures."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from s2l.reports import percentile_tables, tables
from s2l.reports.headline import headline
from s2l.reports.point_tables import PointTable, phase_table, rate_table
from s2l.reports.provenance import client_error
from s2l.reports.summary import Summary
from s2l.reports.sweep import rate_series
from s2l.reports.update_table import update_groups

_VERDICT_STYLE: Final = {"valid": "bold green", "degraded": "bold yellow", "invalid": "bold red"}
_ONLY_ON_THE_PAGE: Final = ("Tokens / s", "Run", "Started / s")
_SHORT: Final = {
    "Offered / s": "rate/s",
    "Delivery": "",
    "Verdict": "",
    "Completed / s": "done/s",
    "Goodput / s": "good/s",
    "Attainment": "attain",
    "Failed": "failed",
    "Succeeded": "ok",
    "95 % interval": "95 %",
}
"""Headings for 80 columns."""
_WORDS: Final = ("Delivery", "Verdict", "Offered / s", "95 % interval")
"""Columns of words, which are not broken."""
_DELIVERY_STYLE: Final = {"stream": "blue", "wait": "yellow"}


def print_summary(summary: Summary, console: Console) -> None:
    """Print the verdict with its findings, the headline and the tables."""
    _print_verdict(summary, console)
    found = headline(summary)
    console.print(Text.assemble("\n", found.lead, (found.figure, "bold"), found.tail))
    for remark in found.remarks:
        console.print(Text(remark, "dim"))
    if not summary.deliveries:
        return
    lags_too = percentile_tables.latency_groups(
        summary, percentile_tables.LATENCIES | percentile_tables.LAGS
    )
    console.print(_percentiles(summary, lags_too))
    if updates := update_groups(summary):
        console.print(_percentiles(summary, updates))
    console.print(_figures(summary))
    if phases := phase_table(summary.phases):
        console.print(_points(phases))
    for text in (tables.parity_text(summary), tables.mismatch_text(summary)):
        if text:
            console.print(Text(text))


def print_rates(named: Sequence[tuple[str, Summary]], console: Console) -> None:
    """Print a row for each delivery and offered rate of several runs."""
    found = rate_table(rate_series(named))
    if found is not None:
        console.print(_points(found))


def _points(found: PointTable) -> Table:
    shown = [at for at, name in enumerate(found.head) if name not in _ONLY_ON_THE_PAGE]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for at in shown:
        name = found.head[at].removeprefix("TTFT ")
        table.add_column(_SHORT.get(name, name), overflow="fold", no_wrap=name in _WORDS)
    for row in found.rows:
        table.add_row(*(Text(row[at]) for at in shown))
    return table


def _print_verdict(summary: Summary, console: Console) -> None:
    validity = summary.info.validity
    console.print(Text(validity.verdict.upper(), _VERDICT_STYLE.get(validity.verdict, "bold")))
    if summary.info.interrupted:
        console.print(Text("Interrupted: the figures are those of the part that was recorded."))
    for finding in validity.findings:
        console.print(Text(f"- {finding.check} ({finding.severity}): {finding.text}"))
    console.print(Text(client_error(summary.info), "dim"))


def _percentiles(summary: Summary, groups: Sequence[percentile_tables.PercentileGroup]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("")
    table.add_column("delivery")
    for name in ("n", *percentile_tables.level_labels(summary)):
        table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        for position, row in enumerate(group.rows):
            label = f"{group.title}, {group.unit}" if position == 0 else ""
            table.add_row(label, _delivery(row.delivery), f"{row.n:,}", *row.cells)
    return table


def _figures(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for one in summary.deliveries:
        table.add_column(_delivery(one.delivery), justify="right")
    for row in tables.throughput_figures(summary) + tables.quality_figures(summary):
        table.add_row(row.label, *map(Text, row.cells))
    return table


def _delivery(name: str) -> Text:
    return Text(name, _DELIVERY_STYLE.get(name, ""))
