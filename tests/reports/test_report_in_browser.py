import csv
import importlib
import io
import shutil
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from s2l.replayer.run import CHUNK_SCHEMA, Finding, Run, TraceRef, Validity
from s2l.reports.html import write_html, write_sweep
from s2l.reports.sweep import sweep_runs

sync_api = importlib.import_module("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
OVERFLOWING = """
() => [...document.querySelectorAll("body *")].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.width && box.right > document.documentElement.clientWidth + 1
    && !node.closest(".scroll") && !node.closest(".unseen");
}).map((node) => `${node.tagName} ${node.className.baseVal ?? node.className}`)
"""
CUT_OFF = """
() => [...document.querySelectorAll(".chart")].filter((chart) => {
  const frame = chart.querySelector("svg.marks").getBoundingClientRect();
  return [...chart.querySelectorAll("svg.marks text")].some((text) => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  });
}).map((chart) => chart.id)
"""
"""Charts with a text that is not whole inside of them."""
LABELS = """
() => [...document.querySelectorAll("#run1-gain .role-axis-label text")]
  .map((text) => text.textContent).sort()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A report opened from disk, and all that the browser had to say about it."""

    def __init__(self, browser: Any, path: Path, width: int | None, scheme: str | None) -> None:
        options = {} if width is None else {"viewport": {"width": width, "height": 800}}
        self.page = browser.new_page(**options | ({"color_scheme": scheme} if scheme else {}))
        self.said: list[str] = []
        self.requested: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.add_init_script(WATCH_POLICY)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)

    def assert_quiet(self, path: Path) -> None:
        assert self.said == []
        assert self.page.evaluate("window.violations") == []
        assert [url for url in self.requested if not url.startswith("data:")] == [path.as_uri()]


@pytest.fixture(scope="module")
def report(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_html(Run.open(synthetic.realistic(folder / "run")), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def complete_report(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    write_html(Run.open(synthetic.complete(folder / "run", 3)), folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (360, "light")])
def test_opens_from_disk(browser, report: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, report, width, scheme)
    charts = opened.page.locator(".chart svg.marks")
    assert charts.count() == opened.page.locator(".chart").count() == 12
    assert opened.page.locator(".chart svg.marks .mark-symbol path").count() > 40
    box = charts.nth(0).bounding_box()
    assert box is not None
    assert 250 < box["width"] <= width
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.assert_quiet(report)
    opened.page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1100, "dark"), (360, "light")])
def test_a_changing_context_is_drawn(
    browser, changing: Run, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    write_html(changing, path)
    page = (opened := Opened(browser, path, width, scheme)).page
    assert page.locator(".chart[id$=-pool] svg.marks").count() == 1
    bars = page.locator("#run1-pool svg.marks .mark-rect path")
    assert bars.count() > 12
    bars.last.hover()
    assert page.locator(".tip").inner_text().startswith("document: ")
    fills = {"dark": ["rgb(109, 183, 242)", "rgb(44, 52, 59)"]}
    fills["light"] = ["rgb(11, 98, 168)", "rgb(225, 229, 233)"]
    found = bars.evaluate_all("nodes => [...new Set(nodes.map(n => getComputedStyle(n).fill))]")
    assert sorted(found) == sorted(fills[scheme])
    rows = page.locator(".updates tbody tr")
    assert not rows.first.is_visible()
    page.locator(".updates summary").press("Enter")
    assert rows.first.is_visible()
    assert rows.count() == 9
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    opened.assert_quiet(path)
    page.close()


def test_charts_follow_the_scheme(browser, report: Path) -> None:
    opened = Opened(browser, report, 1100, "light")
    label = opened.page.locator(".chart svg.marks text").first
    colours = []
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        colours.append(label.evaluate("node => getComputedStyle(node).fill"))
    assert colours == ["rgb(28, 33, 38)", "rgb(230, 233, 236)"]
    opened.page.close()


def test_table_sorts_by_keyboard(browser, report: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "light")).page
    gain = page.get_by_role("button", name="Gain", exact=True)
    gain.focus()
    cells = ".queries tbody td[data-label=Gain]"
    orders = []
    for _ in range(2):
        page.keyboard.press("Enter")
        orders.append(list(page.locator(cells).all_inner_texts()))
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Gain")
    for texts in orders:
        assert texts[-1] == "n/a"
    up, down = ([float(text.rstrip("x")) for text in texts[:-1]] for texts in orders)
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    opened.assert_quiet(report)
    page.close()


def _saved(page: Any, button: Any, path: Path) -> bytes:
    """What pressing a button downloads."""
    with page.expect_download() as download:
        button.press("Enter")
    download.value.save_as(path)
    return path.read_bytes()


def test_pictures_and_their_data_can_be_saved(browser, report: Path, tmp_path: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "dark")).page
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"delivery,value,share,")):
        button = page.get_by_role("button", name=f"Save {name}: Share of requests at least")
        assert _saved(page, button, tmp_path / name).startswith(start)
    assert len((tmp_path / "PNG").read_bytes()) > 5_000
    assert len(list(csv.reader((tmp_path / "CSV").read_text().splitlines()))) == 1 + 12 + 11
    opened.assert_quiet(report)
    page.close()


def test_requests_can_be_saved(browser, report: Path, tmp_path: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "light")).page
    text = _saved(page, page.get_by_role("button", name="Save requests as CSV"), tmp_path / "a")
    rows = list(csv.DictReader(text.decode().splitlines()))
    assert len(rows) == 24
    assert [row["error_type"] for row in rows].count("timeout") == 1
    assert all(float(row["ttft_s"]) > 0 for row in rows if not row["error_type"])
    assert {row["exact_match"] for row in rows} == {"0", "1", ""}
    opened.assert_quiet(report)
    page.close()


def test_cells_that_a_spreadsheet_would_run_are_neutralised(
    browser, synthetic: ModuleType, make_run: Callable[..., Run], tmp_path: Path
) -> None:
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", 'fine, "quoted"']
    rows = [
        synthetic.request(query_id=f"q{i}", request_id=text, output_text=text)
        for i, text in enumerate(formulas)
    ]
    path = tmp_path / "report.html"
    write_html(make_run(*rows, queries=[(f"q{i}", t, []) for i, t in enumerate(formulas)]), path)
    page = (opened := Opened(browser, path, 1100, "light")).page
    text = _saved(page, page.get_by_role("button", name="Save requests as CSV"), tmp_path / "a")
    ids = [row["request_id"] for row in csv.DictReader(io.StringIO(text.decode(), newline=""))]
    assert ids == [*(f"'{text}" for text in formulas[:-1]), formulas[-1]]
    table = _saved(page, page.get_by_role("button", name="Save CSV: Times in"), tmp_path / "b")
    queries = [row[0] for row in csv.reader(io.StringIO(table.decode(), newline=""))][1:]
    assert queries == [f"'{text.strip()}" for text in formulas[:-1]] + formulas[-1:]
    opened.assert_quiet(path)
    page.close()


def test_tables_filter(browser, report: Path, tmp_path: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "light")).page
    field = page.get_by_role("searchbox", name="Filter: Times in")
    field.fill("DEFAULTDICT")
    rows = page.locator(".queries tbody tr:visible")
    assert rows.count() == 1
    assert (
        "12 rows" in page.locator(".queries").locator("xpath=preceding-sibling::div").inner_text()
    )
    button = page.get_by_role("button", name="Save CSV: Times in")
    assert len(_saved(page, button, tmp_path / "a").splitlines()) == 2
    field.fill("")
    assert rows.count() == 12
    page.get_by_role("searchbox", name="Filter: Latency").fill("service")
    assert page.locator("table[data-file$=-latency] tbody tr:visible").count() == 3
    opened.assert_quiet(report)
    page.close()


def test_long_tables_show_their_first_rows(browser, synthetic: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_html(Run.open(synthetic.realistic(tmp_path / "long", 60)), path)
    page = (opened := Opened(browser, path, 360, "light")).page
    rows = page.locator(".queries tbody tr:visible")
    assert rows.count() == 25
    page.get_by_role("button", name="Show all 60").click()
    assert rows.count() == 60
    opened.assert_quiet(path)
    page.close()


def test_charts_zoom(browser, report: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "light")).page
    whole = page.evaluate(LABELS)
    assert {"0%", "100%"} <= set(whole)
    for press, expected in (("Zoom in", False), ("Zoom out", True), ("Zoom out", True)):
        page.get_by_role("button", name=f"{press}: TTFT wait / stream").press("Enter")
        page.wait_for_function(
            f"whole => (({LABELS.strip()})().join() === whole.join()) === {str(expected).lower()}",
            arg=whole,
        )
    page.get_by_role("button", name="Zoom in: TTFT wait / stream").press("Enter")
    page.get_by_role("button", name="Whole: TTFT wait / stream").press("Enter")
    page.wait_for_function(f"whole => ({LABELS.strip()})().join() === whole.join()", arg=whole)
    opened.assert_quiet(report)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_fault(browser, complete_report: Path, scheme: str) -> None:
    page = (opened := Opened(browser, complete_report, 360, scheme)).page
    page.evaluate(AXE)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    serious = [
        f"{fault['id']}: {fault['help']}: {node['html'][:120]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert serious == []
    opened.assert_quiet(complete_report)
    page.close()


def test_a_complete_report_is_whole_on_a_phone(browser, complete_report: Path) -> None:
    opened = Opened(browser, complete_report, 360, "dark")
    _assert_whole(opened, complete_report)
    opened.page.close()


def test_a_sweep_is_whole_on_a_phone(browser, synthetic: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    runs = sweep_runs(synthetic.sweep(tmp_path / "sweep", 20))
    write_sweep(runs, path, [run.path / "report.html" for run in runs])
    opened = Opened(browser, path, 360, "light")
    _assert_whole(opened, path)
    opened.page.get_by_role("link", name="rate-2").click()
    opened.page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)
    assert opened.said == []
    opened.page.close()


def _assert_whole(opened: Opened, path: Path) -> None:
    """No element wider than the page, no text of a chart outside of it, nothing said."""
    assert opened.page.evaluate(OVERFLOWING) == []
    assert opened.page.evaluate(CUT_OFF) == []
    opened.assert_quiet(path)


def test_a_page_at_twice_its_size_does_not_overflow(browser, report: Path) -> None:
    """Zoom of 200 % at 1,100 px is half of the width at twice the density."""
    context = browser.new_context(viewport={"width": 550, "height": 400}, device_scale_factor=2)
    opened = Opened(context, report, None, None)
    _assert_whole(opened, report)
    context.close()


def test_on_paper_all_is_light_and_the_tools_are_gone(browser, report: Path) -> None:
    page = (opened := Opened(browser, report, 800, "dark")).page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".tools:visible, .tool:visible").count() == 0
    opened.assert_quiet(report)
    page.close()


def test_hostile_text_stays_text(
    browser, synthetic: ModuleType, make_run: Callable[..., Run], tmp_path: Path
) -> None:
    fails = {"error": HOSTILE, "request_id": "f", "query_id": "f"}
    rows = [
        synthetic.request(query_id="q", output_text=HOSTILE),
        synthetic.request(query_id="q", request_id="w", delivery="wait", output_text=HOSTILE),
        synthetic.failed(HOSTILE, **fails),
    ]
    pools = [[HOSTILE, "b"], ["c", HOSTILE]]
    chunks = synthetic.pool_chunks("stream-0", 0, [100_000, 200_000], pools)
    info = synthetic.run_info(
        trace=TraceRef(name=HOSTILE, path=HOSTILE, sha256=HOSTILE),
        command=["s2l", HOSTILE],
        options={HOSTILE: HOSTILE},
        packages={HOSTILE: HOSTILE},
        validity=Validity(
            verdict="invalid", findings=[Finding(check=HOSTILE, severity=HOSTILE, text=HOSTILE)]
        ),
    )
    table = pa.Table.from_pylist(chunks, schema=CHUNK_SCHEMA)
    run = make_run(*rows, queries=[("q", HOSTILE, [HOSTILE])], chunks=table, info=info)
    path = tmp_path / "report.html"
    write_html(run, path)
    opened = Opened(browser, path, 360, "light")
    assert opened.page.title() == f"Streaming context: {HOSTILE}"
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("td.text").first.inner_text() == HOSTILE
    assert opened.page.locator("h1").inner_text() == HOSTILE
    assert opened.page.locator("img").count() == 0
    assert opened.page.evaluate(OVERFLOWING) == []
    opened.assert_quiet(path)
    opened.page.close()
