"""The page of datasets: complete in itself, and nothing in it can break out."""

import importlib
import json
import re
import shutil
from pathlib import Path

import pytest

from s2l.reports.dataset_chart import distribution_chart
from s2l.reports.dataset_page import render_datasets, write_dataset_page
from s2l.workloads.stats.dataset_stats import DatasetStats, characterise
from s2l.workloads.stats.distribution import distribution
from s2l.workloads.synth.profiles import profile_named
from s2l.workloads.synth.synthesis import SynthOptions, write_synthetic
from s2l.workloads.synth.text import WordTexts
from s2l.workloads.token_counter import WordCounter
from s2l.workloads.trace import Trace

HOSTILE = "</script><script>window.hacked=1</script>"


@pytest.fixture
def found(tmp_path: Path) -> list[DatasetStats]:
    stats = []
    for name in ("stream2llm-crawl", "stream2llm-anns"):
        write_synthetic(tmp_path / name, profile_named(name), WordTexts(0), SynthOptions(12))
        stats.append(characterise(Trace.open(tmp_path / name), WordCounter()))
    return stats


def charts(page: str) -> list[dict[str, object]]:
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    return [json.loads(block) for block in blocks]


def test_two_side_by_side(found: list[DatasetStats], tmp_path: Path) -> None:
    write_dataset_page(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<h1>") == 1
    assert len(charts(page)) == 9
    assert "synthetic stream2llm-crawl" in page
    assert "12 queries" in page
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!data:)', markup)


@pytest.mark.browser
def test_charts_are_drawn_in_a_browser(found: list[DatasetStats], tmp_path: Path) -> None:
    sync_api = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "the tests need Chromium: make browser"
    file = tmp_path / "page.html"
    write_dataset_page(found, file)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)
        assert said == []
        assert page.locator(".chart svg.marks").count() == 9
        browser.close()


def test_names_are_told_apart_and_stay_text(found: list[DatasetStats]) -> None:
    from dataclasses import replace

    twice = [replace(one, name=HOSTILE) for one in found]
    page = render_datasets(twice)
    assert HOSTILE not in page
    assert "&lt;/script&gt;&lt;script&gt;window.hacked=1&lt;/script&gt; (2)" in page


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one dataset"):
        write_dataset_page([], tmp_path / "page.html")


def test_nothing_to_draw() -> None:
    same = [("a", distribution([], "s")), ("b", distribution([1, 1], "s"))]
    assert distribution_chart(same, "t") is None
