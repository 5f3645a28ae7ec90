"""A run's metrics, request by request, as Parquet, CSV and JSON; its summary as Markdown."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.replayer.run import Run
from s2l.reports.comparison.words import doubts
from s2l.reports.gain import StreamingGain
from s2l.reports.headline import asked_early, gain_headline
from s2l.reports.metrics import total
from s2l.reports.moments import early_moment, final_rows
from s2l.reports.pairs import Pairs
from s2l.reports.percentiles import LABELS, LEVELS, percentile, samples_needed
from s2l.reports.request_metrics import light_requests, metric_table
from s2l.reports.scores import SIMILARITY
from s2l.reports.summary import DELIVERIES
from s2l.reports.units import NOT_KNOWN, Unit, number, percent
from s2l.workloads.durable import durable_file
from s2l.workloads.markdown_text import line

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula; the last four are the wide forms of the first four."""
_ROWS: Final = 65_536
_LATENCIES: Final = {
    "ttft_s": "TTFT",
    "ttft_user_s": "TTFT, user",
    "tpot_s": "TPOT",
    "e2e_s": "End to end",
}
_SCORES: Final = {
    "exact_match": "Exact match",
    "token_f1": "Token F1",
    "contains_answer": "Contains the answer",
    "semantic_similarity": "Semantic similarity",
    "judge": "Judged correct",
    "refusal": "Refusals",
}


def export_table(run: Run, kind: str, path: Path) -> int:
    """Write the metrics of a run in one of ``TABLE_FORMATS``; how many requests there are.

    Raises:
        RunError: a table is missing or damaged.
        OSError: the file cannot be written.
    """
    table = metric_table(run)
    with durable_file(path) as file:
        TABLE_FORMATS[kind](run, table, file)
    return int(table.num_rows)


def inert_cell(value: Any) -> Any:
    """What a cell of CSV holds: text that a spreadsheet would run as a formula gets a quote first.

    Numbers are written as they are: a spreadsheet reads -1 as a number.
    """
    if not isinstance(value, str) or not value.lstrip(" \u00a0\n").startswith(_FORMULA):
        return value
    return f"'{value}"


def _parquet(run: Run, table: pa.Table, file: BinaryIO) -> None:
    pq.write_table(table, file, compression="zstd")


def _csv(run: Run, table: pa.Table, file: BinaryIO) -> None:
    text = TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow("" if value is None else inert_cell(value) for value in row.values())
    text.flush()
    text.detach()


def _json(run: Run, table: pa.Table, file: BinaryIO) -> None:
    """One array, a request a line."""
    before = b"[\n"
    for row in _rows(table):
        file.write(before + json.dumps(row, ensure_ascii=False, allow_nan=False).encode())
        before = b",\n"
    file.write(b"\n]\n" if table.num_rows else b"[]\n")


def _markdown(run: Run, table: pa.Table, file: BinaryIO) -> None:
    file.write(summary_markdown(run, table).encode())


TABLE_FORMATS: Final[dict[str, Callable[[Run, pa.Table, BinaryIO], None]]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
"""Writers by the format's name."""


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(_ROWS):
        yield from batch.to_pylist()


def summary_markdown(run: Run, table: pa.Table) -> str:
    """The gain, percentiles and scores of a run as Markdown, its doubts first."""
    info = run.info
    text = StringIO()
    name = ", ".join(filter(None, (info.trace.name, info.target.model, info.created_utc[:10])))
    print(f"**{line(run.path.name)}** ({line(name)})\n", file=text)
    for doubt in doubts("This", info):
        print(f"**{line(doubt)}**\n", file=text)
    if said := _headline(run):
        print(" ".join(map(line, said)) + "\n", file=text)
    groups = _groups(table)
    levels = _levels(groups)
    print(f"| | | n | {' | '.join(LABELS[level] for level in levels)} |", file=text)
    print(f"|---|---|---:|{'---:|' * len(levels)}", file=text)
    for column, title in _LATENCIES.items():
        for delivery, part in groups:
            print(_percentile_row(title, delivery, _known(part, column), levels), file=text)
    print(f"\n| | {' | '.join(line(delivery) for delivery, _ in groups)} |", file=text)
    print(f"|---|{'---:|' * len(groups)}", file=text)
    for label, cells in _figures(table, groups):
        print(f"| {label} | {' | '.join(cells)} |", file=text)
    return text.getvalue()


def _headline(run: Run) -> list[str]:
    """The streaming gain in sentences; none where the run has one delivery."""
    final = final_rows(light_requests(run))
    if set(DELIVERIES) - set(final["delivery"].unique().to_pylist()):
        return []
    said = gain_headline(StreamingGain.of(Pairs.of(final), run.info.seed))
    return [str(said), *asked_early(early_moment(final)), *said.remarks]


def _groups(table: pa.Table) -> list[tuple[str, pa.Table]]:
    """Each delivery's rows, those that were answered early on their own."""
    names = pc.binary_join_element_wise(
        table["delivery"],
        pc.fill_null(pc.binary_join_element_wise("at ", table["answer_at"], ""), ""),
        " ",
    )
    found = sorted(set(names.to_pylist()))
    return [(name, table.filter(pc.equal(names, name))) for name in found]


def _levels(groups: Sequence[tuple[str, pa.Table]]) -> list[str]:
    most = max((_known(part, "ttft_s").size for _, part in groups), default=0)
    return [name for name in LEVELS if name != "p999" or most >= samples_needed(LEVELS[name])]


def _percentile_row(
    title: str, delivery: str, values: np.ndarray[Any, Any], levels: Sequence[str]
) -> str:
    found = [percentile(values, LEVELS[level]) for level in levels]
    unit = Unit.fitting(found)
    cells = [unit.text(value) for value in found]
    return f"| {title}, {unit.name} | {line(delivery)} | {values.size:,} | {' | '.join(cells)} |"


def _figures(
    table: pa.Table, groups: Sequence[tuple[str, pa.Table]]
) -> Iterator[tuple[str, list[str]]]:
    parts = [part for _, part in groups]
    yield "Succeeded", [f"{part['error_type'].null_count:,} of {part.num_rows:,}" for part in parts]
    for column, label in (("prompt_tokens", "Prompt tokens"), ("output_tokens", "Output tokens")):
        yield label, [number(total(part, column)) for part in parts]
    for column, label in _SCORES.items():
        if column in table.column_names:
            yield label, [_mean(part, column) for part in parts]


def _mean(part: pa.Table, column: str) -> str:
    values = _known(part, column)
    if not values.size:
        return NOT_KNOWN
    mean = float(values.mean())
    return f"{mean:.3f}" if column == SIMILARITY else percent(mean)


def _known(part: pa.Table, column: str) -> np.ndarray[Any, Any]:
    return np.asarray(part[column].drop_null().to_numpy(), dtype=np.float64)
