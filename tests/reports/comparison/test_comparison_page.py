import importlib
import re
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from s2l.replayer.run import Finding, Run, Validity
from s2l.reports.comparison.compare import compare
from s2l.reports.comparison.gate import judge_gates, parse_gate
from s2l.reports.comparison.html import render
from s2l.reports.comparison.markdown import markdown
from s2l.reports.comparison.ttft_overlay import overlays
from s2l.workloads.markdown_text import line

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=alert(1)>|`*_"
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Any) -> list[str]:
    """What axe finds wrong with the page."""
    page.evaluate(AXE)
    return [f"{one['id']}: {one['help']}" for one in page.evaluate("axe.run()")["violations"]]


def _hostile(named: MakeNamed, rows: MakeRows, synthetic: ModuleType) -> Run:
    target = msgspec.structs.replace(synthetic.run_info().target, model=HOSTILE)
    trace = msgspec.structs.replace(synthetic.run_info().trace, name=HOSTILE)
    finding = Finding(check=HOSTILE, severity="degraded", text=HOSTILE)
    validity = Validity(verdict="degraded", findings=[finding])
    return named("h", rows(8), target=target, trace=trace, validity=validity)


def test_text_of_others_stays_text(named: MakeNamed, rows: MakeRows, synthetic: ModuleType) -> None:
    compared = [compare(_hostile(named, rows, synthetic), named("b", rows(8)))]
    page = render(compared, [])
    assert HOSTILE not in page
    markup = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "<img" not in markup
    assert "<script>window" not in page
    text = markdown(compared, [])
    assert "<script" not in text.replace("\\<script", "")
    [first] = [one for one in text.splitlines() if one.startswith("- **A**")]
    assert line(HOSTILE) in first


def test_no_two_runs_are_drawn_alike(synthetic: ModuleType) -> None:
    table = synthetic.request_table(*(synthetic.request(request_id=f"{i}") for i in range(3)))
    names = [chr(ord("A") + at) for at in range(16)]
    [found] = overlays([(name, table) for name in names])
    encoding = found.spec["layer"][0]["encoding"]
    scales = [encoding[name]["scale"] for name in ("color", "strokeDash")]
    assert [scale["domain"] for scale in scales] == [names, names]
    colours, dashes = (scale["range"] for scale in scales)
    assert len(set(zip(colours, map(tuple, dashes), strict=True))) == 16
    # In black and white the first four differ all the same.
    assert len(set(map(tuple, dashes[:4]))) == 4


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_the_page_opens_from_disk(
    named: MakeNamed,
    rows: MakeRows,
    synthetic: ModuleType,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    sync_api = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "the tests need Chromium: make browser"
    file = tmp_path / "compare.html"
    base = _hostile(named, rows, synthetic)
    compared = [
        compare(base, named(name, rows(8, factor))) for name, factor in (("b", 0.9), ("c", 2))
    ]
    file.write_text(render(compared, judge_gates([parse_gate("ttft_s.p50 > 1%")], compared)))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)
        assert said == []
        assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".chart svg.marks").count() == 1
        assert page.locator(".changes tbody tr").count() > 30
        assert page.locator("h1").inner_text() == HOSTILE
        assert faults(page) == []
        browser.close()


def test_a_large_change_leaves_the_others_to_be_seen(named: MakeNamed, rows: MakeRows) -> None:
    """Twice and half are as far from no change, whatever else there is."""
    twice = compare(named("a", rows(40)), named("b", rows(40, 2.0)))
    page = render([twice], [])
    points = {
        label: float(x) + 1 - 100
        for label, x in re.findall(
            r'rowheader">([^<]*)</th>.*?class="point" x="([\d.]+)"', page, flags=re.DOTALL
        )
    }
    assert points["TTFT p50"] == pytest.approx(96, abs=0.01)
    half = compare(named("c", rows(40, 2.0)), named("d", rows(40)))
    found = re.search(r'TTFT p50</th>.*?class="point" x="([\d.]+)"', render([half], []), re.DOTALL)
    assert found is not None
    assert float(found[1]) + 1 - 100 == pytest.approx(-96, abs=0.01)
