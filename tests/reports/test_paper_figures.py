"""Figures for papers: vectors, 84 mm wide, holding what they say."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from pypdf import PdfReader

from s2l.replayer.run import Run, RunError
from s2l.reports.paper_figures import ttft_by_rate, ttft_ccdf, write_figure

Make = Callable[..., Run]


@pytest.fixture
def at_rate(synthetic: ModuleType, tmp_path: Path) -> Make:
    """A run of 200 queries at a rate, TTFT 1 to 200 ms times ``factor``, streaming and waiting."""

    def make(rate: float, factor: int = 1, n: int = 200) -> Run:
        rows = [
            synthetic.request(
                request_id=f"{delivery}-{i}",
                query_id=f"q{i}",
                delivery=delivery,
                rate=rate,
                first_token_us=1_000_000 + (i + 1) * 1_000 * factor * (1 + (delivery == "wait")),
            )
            for delivery in ("stream", "wait")
            for i in range(n)
        ]
        table = synthetic.request_table(*rows)
        return Run.open(synthetic.write_run(tmp_path / f"run-{rate}", table))

    return make


def _rows(spec: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            found.extend(node["values"] if isinstance(node.get("values"), list) else [])
            for value in node.values():
                walk(value)

    walk({"data": spec.get("data", {}), "datasets": spec.get("datasets", {})})
    for rows in spec.get("datasets", {}).values():
        found.extend(rows)
    if not found:
        for layer in spec["layer"]:
            walk(layer["data"])
    return found


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_one_column_wide(at_rate: Make, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"figure.{kind}"
    write_figure("ttft-ccdf", [at_rate(1.0)], path)
    if kind == "pdf":
        [page] = PdfReader(path).pages
        assert float(page.mediabox.width) * 25.4 / 72 == pytest.approx(84, abs=0.05)
        assert "TTFT" in page.extract_text()
        assert "/Subtype /Image" not in path.read_bytes().decode("latin-1")
        return
    root = ElementTree.fromstring(path.read_text())
    assert (root.get("width"), root.get("height")) == ("84.000mm", "52.000mm")
    box = [float(part) for part in (root.get("viewBox") or "").split()]
    assert box[2] == pytest.approx(84 * 96 / 25.4)
    assert root.findall(".//{http://www.w3.org/2000/svg}image") == []
    sizes = re.findall(r'font-size="([0-9.]+)px"', path.read_text())
    assert {round(float(size) * 72 / 96) for size in sizes} == {8}


def test_the_same_bytes_again(at_rate: Make, tmp_path: Path) -> None:
    run = at_rate(1.0)
    for name in ("a.svg", "b.svg"):
        write_figure("ttft-ccdf", [run], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_shares(at_rate: Make) -> None:
    rows = [row for row in _rows(ttft_ccdf([at_rate(1.0)])) if row["delivery"] == "stream"]
    assert (rows[0]["x"], rows[0]["share"]) == (pytest.approx(1.0), 1.0)
    assert (rows[-1]["x"], rows[-1]["share"]) == (pytest.approx(200.0), pytest.approx(1 / 200))


def test_percentiles_by_rate(at_rate: Make, tmp_path: Path) -> None:
    runs = [at_rate(1.0), at_rate(2.0, 3)]
    rows = _rows(ttft_by_rate(runs))
    found = {(row["delivery"], row["level"], row["rate"]): row["x"] for row in rows}
    assert len(found) == 12
    values = np.arange(1, 201)
    assert found["stream", "p95", 1.0] == pytest.approx(np.percentile(values, 95) / 1e3)
    assert found["wait", "p99", 2.0] == pytest.approx(np.percentile(values * 6, 99) / 1e3)
    write_figure("ttft-by-rate", runs, tmp_path / "f.svg")
    text = "".join(ElementTree.fromstring((tmp_path / "f.svg").read_text()).itertext())
    for label in ("p50", "p95", "p99", "stream", "wait", "TTFT (s)", "Offered rate"):
        assert label in text


def test_too_few_requests_have_no_tail(at_rate: Make) -> None:
    rows = _rows(ttft_by_rate([at_rate(1.0, n=30), at_rate(2.0, n=30)]))
    assert {row["level"] for row in rows} == {"p50", "p95"}


def test_nothing_to_draw(at_rate: Make, synthetic: ModuleType, make_run: Make) -> None:
    with pytest.raises(RunError, match="two rates or more"):
        ttft_by_rate([at_rate(1.0)])
    with pytest.raises(RunError, match="no request produced a token"):
        ttft_ccdf([make_run(synthetic.failed("timeout"))])
