"""Runs with the published TTFT percentiles give a report with the published figures."""

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from s2l.replayer.run import Run
from s2l.reports.html import write_html
from s2l.reports.summary import Summary

PUBLISHED = {
    "crawl 0.5": ((0.0298, 0.2185, 0.6234), (0.1164, 0.8366, 1.7688)),
    "crawl 1": ((0.0298, 0.2694, 0.6713), (0.1313, 1.0415, 2.0930)),
    "crawl 2": ((0.0374, 0.3779, 0.8932), (0.1815, 1.5646, 2.4897)),
    "crawl 4": ((0.0722, 1.9569, 4.4535), (0.7521, 4.3418, 5.4011)),
    "anns 0.25": ((0.1166, 0.5726, 1.8198), (0.2062, 0.8810, 3.1063)),
    "anns 0.5": ((0.1297, 0.5623, 2.1651), (0.2060, 1.0526, 3.2740)),
    "anns 1": ((0.1563, 0.7394, 2.7436), (0.2545, 2.0116, 3.9873)),
    "anns 2": ((0.2713, 2.1384, 3.8154), (0.3831, 3.6789, 5.2298)),
}
"""TTFT p50, p95 and p99 in seconds on 2 H200, streaming and waiting, by workload and rate
(Stream2LLM, MLSys 2026, vLLM's own scheduler)."""

RANKS = {"p50": 100, "p95": 190, "p99": 198}
"""Where these percentiles stand among 201 values in order, without interpolation."""


def ttfts_s(percentiles: tuple[float, ...], seed: int) -> list[float]:
    """201 values with exactly these percentiles, linear between them, in a random order."""
    low, high = percentiles[0] / 2, percentiles[-1] * 1.2
    ordered = np.interp(np.arange(201), [0, *RANKS.values(), 200], [low, *percentiles, high])
    return np.random.default_rng(seed).permutation(ordered).tolist()


def published_run(synthetic: ModuleType, path: Path, sides: tuple[tuple[float, ...], ...]) -> Run:
    rows = [
        synthetic.timed(f"q{i}", delivery, position * 10**9 + i * 10**6, ttft_s)
        for position, delivery in enumerate(("stream", "wait"))
        for i, ttft_s in enumerate(ttfts_s(sides[position], seed=position))
    ]
    queries = [(f"q{i}", f"Question {i}?", []) for i in range(201)]
    return Run.open(synthetic.write_run(path, synthetic.request_table(*rows), queries=queries))


def shown(page: str, delivery: str) -> dict[str, tuple[str, str]]:
    """The cells of TTFT by percentile: as text, and with all digits."""
    group = page[page.index("TTFT, s <span") :].split("</tbody>")[0]
    row = next(row for row in group.split("<tr>") if f">{delivery}</span>" in row)
    cells = re.findall(r'<td[^>]* data-value="(.*?)">([^<]*)', row)
    levels = ("p50", "p90", "p95", "p99")
    return {level: (text, exact) for level, (exact, text) in zip(levels, cells, strict=True)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_report_has_the_published_figures(
    synthetic: ModuleType, tmp_path: Path, name: str
) -> None:
    sides = PUBLISHED[name]
    run = published_run(synthetic, tmp_path / "run", sides)
    summary: Summary = write_html(run, tmp_path / "report.html")[0]
    page = (tmp_path / "report.html").read_text()
    for one, percentiles in zip(summary.deliveries, sides, strict=True):
        cells = shown(page, one.delivery)
        for level, published in zip(RANKS, percentiles, strict=True):
            assert one.latencies.ttft_s.level(level) == pytest.approx(published, abs=1e-6)
            text, exact = cells[level]
            assert float(exact) == pytest.approx(published, abs=5e-7)
            assert text == f"{published:.{len(text.split('.')[1])}f}"
    assert summary.gain is not None
    for side in summary.gain.sides:
        if side.percentile in RANKS:
            at = list(RANKS).index(side.percentile)
            assert side.ratio == pytest.approx(sides[1][at] / sides[0][at], rel=1e-4)
