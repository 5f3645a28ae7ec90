import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s2l.replayer.run import Run
from s2l.reports.html import write_html
from s2l.reports.query_table import query_table
from s2l.reports.run_data import RunData

MakeRun = Callable[..., Run]

LONG = "It is functools, whose documentation goes on for a while. " * 8


def both(synthetic: ModuleType, wait: dict[str, Any], stream: dict[str, Any]) -> list[Any]:
    return [
        synthetic.request(request_id=f"{name}-0", delivery=name) | changes
        for name, changes in (("wait", wait), ("stream", stream))
    ]


@pytest.mark.parametrize(
    ("wait", "stream", "lead", "same"),
    [
        ({"output_text": "b"}, {"output_text": "a"}, "a", False),
        ({"output_text": "a"}, {"output_text": "a"}, "a", True),
        ({"output_text": "b"}, {"error_type": "timeout"}, "b", False),
        ({"error_type": "cut"}, {"error_type": "timeout"}, "no answer: timeout", False),
        ({"output_text": ""}, {"output_text": ""}, "", True),
    ],
    ids=["two answers", "one answer", "one failed", "both failed", "empty answers"],
)
def test_what_stands_for_folded_answers(
    make_run: MakeRun, synthetic: ModuleType, wait: Any, stream: Any, lead: str, same: bool
) -> None:
    data = RunData.read(make_run(*both(synthetic, wait, stream)))
    [row] = query_table(data, ["stream", "wait"]).rows
    assert (row.lead, row.same) == (lead, same)


@pytest.mark.browser
def test_answers_are_folded_and_open_by_keyboard(
    make_run: MakeRun, synthetic: ModuleType, tmp_path: Path
) -> None:
    rows = [
        synthetic.request(
            request_id=f"{name}-{n}",
            query_id=f"q{n}",
            delivery=name,
            output_text=LONG if n else f"{LONG}{name}",
        )
        for name in ("wait", "stream")
        for n in range(25)
    ]
    file = tmp_path / "report.html"
    write_html(make_run(*rows), file)
    sync_api = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "the tests need Chromium: make browser"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)
        table = page.locator("table.queries")
        assert table.bounding_box()["height"] < 25 * 200
        answers = table.locator("td.answers dl")
        assert not answers.first.is_visible()
        table.locator("summary").first.press("Enter")
        assert answers.first.is_visible()
        assert answers.first.locator("dt").all_inner_texts() == ["stream", "wait", "reference"]
        page.get_by_role("button", name="Open all").press("Enter")
        assert answers.last.is_visible()
        assert answers.last.locator("dt").all_inner_texts() == ["both", "reference"]
        page.get_by_role("button", name="Fold all").press("Enter")
        assert table.locator("details[open]").count() == 0
        page.emulate_media(media="print")
        assert answers.first.bounding_box()["width"] > 300
        assert answers.first.bounding_box()["height"] > 40
        browser.close()
