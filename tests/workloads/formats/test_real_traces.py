"""The public traces, every row accounted for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.formats.base import ImportOptions, PlannedDocument, PlannedQuery, Record
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.query import Query
from s2l.workloads.synth.text import WordTexts

Real = Callable[[str], Path]


def queries(records: list[Record]) -> int:
    return sum(isinstance(one, Query | PlannedQuery) for one in records)


@pytest.mark.parametrize(
    ("fmt", "name", "rows"),
    [
        ("azure", "azure-2023-conv.csv", 19_366),
        ("mooncake", "mooncake-conversation.jsonl", 12_031),
        ("ragpulse", "ragpulse-0_trace.jsonl", 7_106),
    ],
)
def test_every_row_is_a_query(fmt: str, name: str, rows: int, real: Real) -> None:
    log = ImportLog(strict=True)
    records = list(FORMATS[fmt].read(real(name), ImportOptions(), log))
    assert (log.rows, log.good, queries(records)) == (rows, rows, rows)


def test_mooncake_tokens_and_blocks(real: Real) -> None:
    path = real("mooncake-conversation.jsonl")
    records = FORMATS["mooncake"].read(path, ImportOptions(), ImportLog(strict=True))
    documents = [one for one in records if isinstance(one, PlannedDocument)]
    assert sum(one.tokens for one in documents) == 144_793_823
    assert len({one.doc_id for one in documents}) == 182_790


def test_azure_comes_back_byte_for_byte(real: Real, bench: Any, short_texts: Any) -> None:
    path = real("azure-2023-conv.csv")
    trace = bench.read("azure", path, texts=short_texts, check=False)
    assert trace.manifest.counts.queries == trace.manifest.counts.finished_queries == 19_366
    out = bench.write("azure", trace, ".csv")
    assert out.read_bytes().rstrip() == path.read_bytes().rstrip()


def test_ragpulse_is_written_with_its_texts(real: Real, bench: Any) -> None:
    trace = bench.read("ragpulse", real("ragpulse-0_trace.jsonl"), texts=WordTexts(0), check=False)
    counts = trace.manifest.counts
    assert (counts.queries, counts.finished_queries) == (7_106, 7_106)
    assert counts.documents == 15_565
    assert all(len((d.text or "").split()) == d.meta["tokens"] for d in trace.documents())
