"""Comparisons as Markdown, for a pull request or a page of notes."""

from collections.abc import Iterator, Sequence

from s2l.reports.comparison.cells import differences, rows
from s2l.reports.comparison.compare import Comparison, ConditionChanges
from s2l.reports.comparison.gate import GateResult
from s2l.reports.comparison.terminal import runs_of
from s2l.reports.comparison.words import doubts, letter, sentences
from s2l.workloads.markdown_text import line


def markdown(compared: Sequence[Comparison], gates: Sequence[GateResult]) -> str:
    """The text of comparisons with one base, headings from the third level on."""
    return "\n".join(_lines(compared, gates)) + "\n"


def _lines(compared: Sequence[Comparison], gates: Sequence[GateResult]) -> Iterator[str]:
    runs = runs_of(compared)
    for position, run in enumerate(runs):
        yield f"- **{letter(position)}** {line(run.name)}: {line(run.info.target.model)}"
        for doubt in doubts(letter(position), run.info):
            yield f"  - **{line(doubt)}**"
    for gate in gates:
        yield f"- **{'FAILED' if gate.failed else 'passed'}** {line(gate.gate)}: {line(gate.says)}"
    for position, one in enumerate(compared, start=1):
        name = letter(position)
        yield from ("", f"### {name} against A", "")
        yield from (f"- {line(text)}" for text in sentences(one, "A", name))
        for condition in one.conditions:
            yield from _table(condition, name)
        yield from ("", *(f"- {line(remark)}" for remark in one.remarks))
    if found := differences(runs):
        heads = " | ".join(letter(at) for at in range(len(runs)))
        yield from ("", "### What differs", "", f"| | {heads} |", "|---|" + "---|" * len(runs))
        for row in found:
            yield f"| {line(row.label)} | {' | '.join(map(line, row.values))} |"


def _table(one: ConditionChanges, name: str) -> Iterator[str]:
    yield from ("", f"**{line(str(one.condition))}**, {one.succeeded} of {one.pairs} pairs", "")
    yield f"| | A | {name} | change, 95 % interval | |"
    yield "|---|---:|---:|---:|---|"
    for row in rows(one):
        cells = (row.label, row.base, row.other, row.change, row.says)
        yield f"| {' | '.join(map(line, cells))} |"
