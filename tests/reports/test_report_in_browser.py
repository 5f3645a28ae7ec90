import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from s2l.replayer.run import Run
from s2l.reports.html import write_html

sync_api = importlib.import_module("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A report opened from disk, and all that the browser had to say about it."""

    def __init__(self, browser: sync_api.Browser, path: Path, width: int, scheme: str) -> None:
        size = {"width": width, "height": 800}
        self.page = browser.new_page(viewport=size, color_scheme=scheme)
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


@pytest.fixture
def report(synthetic: ModuleType, tmp_path: Path) -> Path:
    write_html(Run.open(synthetic.realistic(tmp_path / "run")), tmp_path / "report.html")
    return tmp_path / "report.html"


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (360, "light")])
def test_opens_from_disk(browser, report: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, report, width, scheme)
    charts = opened.page.locator(".chart svg.marks")
    assert charts.count() == 2
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
    assert page.locator(".chart svg.marks").count() == 3
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
    gain = page.get_by_role("button", name="Gain")
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


def test_pictures_can_be_saved(browser, report: Path, tmp_path: Path) -> None:
    page = (opened := Opened(browser, report, 1100, "dark")).page
    page.locator(".chart summary").first.click()
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            page.get_by_text(f"Save as {name}").first.click()
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert opened.said == []
    assert page.evaluate("window.violations") == []
    page.close()


def test_hostile_text_stays_text(
    browser, synthetic: ModuleType, make_run: Callable[..., Run], tmp_path: Path
) -> None:
    rows = [
        synthetic.request(query_id="q", output_text=HOSTILE),
        synthetic.request(query_id="q", request_id="w", delivery="wait", output_text=HOSTILE),
    ]
    path = tmp_path / "report.html"
    write_html(make_run(*rows, queries=[("q", HOSTILE, [HOSTILE])]), path)
    opened = Opened(browser, path, 360, "light")
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("td.text").inner_text() == HOSTILE
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    opened.assert_quiet(path)
    opened.page.close()
