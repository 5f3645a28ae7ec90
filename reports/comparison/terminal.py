"""Comparisons on a terminal: doubts first, then words, then figures."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from s2l.reports.comparison.cells import differences, rows
from s2l.reports.comparison.compare import Comparison, ConditionChanges
from s2l.reports.comparison.gate import GateResult
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.words import doubts, letter, sentences

_STYLES: Final = {"better": "green", "worse": "red", "changed": "yellow", "none": "dim"}


def print_comparisons(
    compared: Sequence[Comparison], gates: Sequence[GateResult], console: Console
) -> None:
    """Print comparisons with one base."""
    runs = runs_of(compared)
    for position, run in enumerate(runs):
        console.print(Text(f"{letter(position)}  {run.name}  {_about(run)}".rstrip()))
        for doubt in doubts(letter(position), run.info):
            console.print(Text(doubt, "bold yellow"))
    for position, one in enumerate(compared, start=1):
        for sentence in sentences(one, "A", letter(position)):
            console.print(Text(sentence, "bold"))
        for condition in one.conditions:
            console.print(_table(condition, letter(position)))
        for remark in one.remarks:
            console.print(Text(remark, "dim"))
    for difference in differences(runs):
        sides = (f"{letter(at)}: {value}" for at, value in enumerate(difference.values))
        console.print(Text(f"{difference.label}: {'; '.join(sides)}", "dim"))
    for gate in gates:
        word, style = ("FAILED", "bold red") if gate.failed else ("passed", "green")
        console.print(Text.assemble((word, style), f"  {gate.gate}: {gate.says}"))


def runs_of(compared: Sequence[Comparison]) -> list[Side]:
    """The base, then every other run."""
    return [compared[0].base, *(one.other for one in compared)]


def _about(run: Side) -> str:
    target = run.info.target
    return " · ".join(
        filter(None, (target.model, f"{target.server} {target.server_version}".strip()))
    )


def _table(one: ConditionChanges, name: str) -> Table:
    title = f"{one.condition} ({one.succeeded} of {one.pairs} pairs succeeded)"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    table.add_column("")
    for head in ("A", name, "change, 95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    for row in rows(one):
        style = _STYLES.get(row.verdict, "")
        table.add_row(row.label, row.base, row.other, Text(row.change, style), row.says)
    return table
