"""The site: complete in itself, the same again, never losing a run, and nothing in it runs."""

import base64
import hashlib
import importlib
import json
import re
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from s2l.replayer.run import Run, RunError, TraceRef
from s2l.reports.site.build import (
    build_site,
    pages_folder,
    runs_in,
    space_card,
    write_no_jekyll,
)
from s2l.reports.site.index import SiteError, SiteIndex, decode_index, read_index, slug
from s2l.workloads.synth.profiles import profile_named
from s2l.workloads.synth.synthesis import SynthOptions, write_synthetic
from s2l.workloads.synth.text import WordTexts
from s2l.workloads.trace import Trace

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u0007"
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
ATOM = "{http://www.w3.org/2005/Atom}"
Make = Callable[..., Run]


@pytest.fixture
def make(synthetic: ModuleType, tmp_path: Path) -> Make:
    """Writes a run of eight queries in both deliveries; gain 4 at the median."""

    def write(name: str, day: int = 1, **changes: Any) -> Run:
        rows = [
            synthetic.request(
                request_id=f"{delivery}-{i}",
                query_id=f"q{i}",
                delivery=delivery,
                rate=0.5,
                first_token_us=1_000_000 + (i + 1) * 10_000 * (4 if delivery == "wait" else 1),
            )
            for delivery in ("stream", "wait")
            for i in range(8)
        ]
        info = synthetic.run_info(**({"created_utc": f"2025-11-{day:02}T10:00:00+00:00"} | changes))
        path = tmp_path / "runs" / name
        return Run.open(synthetic.write_run(path, synthetic.request_table(*rows), info=info))

    return write


def content(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def pages(site: Path) -> dict[str, str]:
    """The pages that are the site's own, by path."""
    own = [site / "index.html", *site.glob("traces/*/index.html")]
    return {str(file.relative_to(site)): file.read_text() for file in own}


def test_what_is_on_it(make: Make, tmp_path: Path) -> None:
    site = tmp_path / "site"
    index = build_site([make("one"), make("two", 2)], site, title="Ours")
    assert [run.name for run in index.newest_first()] == ["two", "one"]
    [trace] = index.traces
    assert trace.id == "crawl-20251129-9f9f9f9f9f9f"
    ids = [run.id for run in index.runs]
    assert sorted(content(site)) == sorted(
        ["index.html", "feed.xml", "site.json", f"traces/{trace.id}/index.html"]
        + [f"runs/{one}/index.html" for one in ids]
    )
    one = index.runs[0]
    assert re.fullmatch(r"one-[0-9a-f]{8}", one.id)
    assert (one.queries, one.rates_qps, one.gain, one.verdict) == (8, [0.5], 4.0, "degraded")
    assert one.gain_interval == pytest.approx((4.0, 4.0))
    stream, wait = one.deliveries
    assert (stream.ttft_p50_s, wait.ttft_p50_s) == pytest.approx((0.045, 0.18))
    assert stream.ttft_p95_s is None
    text = (site / "index.html").read_text()
    for shown in ("Ours", "2 runs over 1 trace", "45.0 ms", "180 ms", "4.0x", "SmolLM2-135M"):
        assert shown in text
    links = re.findall(r'href="([^"#:]+)"', text)
    assert [link for link in links if not (site / link).is_file()] == []


def test_what_failed_and_what_was_not_sent_are_told_apart(
    synthetic: ModuleType, make_run: Make, tmp_path: Path
) -> None:
    kinds = ["timeout", "unsent", "unsent", "unsent"]
    rows = [
        synthetic.failed(kind, request_id=f"s{i}", query_id=f"q{i}") for i, kind in enumerate(kinds)
    ]
    index = build_site([make_run(*rows, synthetic.request())], tmp_path / "site")
    [stream] = index.runs[0].deliveries
    assert (stream.planned, stream.succeeded, stream.failed, stream.unsent) == (5, 1, 1, 3)
    assert "1 failed, 3 unsent" in (tmp_path / "site" / "index.html").read_text()


def test_the_same_again_is_the_same(make: Make, tmp_path: Path) -> None:
    runs = [make("one"), make("two", 2)]
    build_site(runs, tmp_path / "a", title="T")
    build_site(reversed_order := runs[::-1], tmp_path / "b", title="T")
    build_site(reversed_order, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_adding_loses_nothing(make: Make, tmp_path: Path) -> None:
    site = tmp_path / "site"
    old = make("old")
    build_site([old], site, title="Kept", url="https://x.example/s")
    kept = content(site)
    shutil.rmtree(old.path)
    index = build_site([make("new", 2)], site)
    assert [run.name for run in index.newest_first()] == ["new", "old"]
    assert (index.title, index.url) == ("Kept", "https://x.example/s/")
    now = content(site)
    assert set(kept) < set(now)
    page = f"runs/{index.newest_first()[1].id}/index.html"
    assert now[page] == kept[page]
    assert "old" in pages(site)["index.html"]


def test_a_run_that_was_scored_since_is_written_anew(make: Make, tmp_path: Path) -> None:
    from s2l.reports.scores import JUDGE, Score, ScoreSource, write_scores

    run, site = make("one"), tmp_path / "site"
    build_site([run], site)
    before = content(site)
    write_scores(run, JUDGE, [Score("stream-0", 1.0, "correct")], ScoreSource(model="m"))
    build_site([run], site)
    assert set(content(site)) == set(before)


def test_a_trace_at_hand_has_its_facts_and_keeps_them(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    options = SynthOptions(5)
    write_synthetic(folder, profile_named("stream2llm-crawl"), WordTexts(0), options)
    trace = Trace.open(folder)
    ref = TraceRef(name=trace.manifest.name, path=str(folder), sha256=trace.sha256)
    run, site = make("one", trace=ref), tmp_path / "site"
    [found] = build_site([run], site).traces
    assert dict(found.facts)["Queries"] == "5, 5 recorded to their end"
    [page] = (site / "traces").glob("*/index.html")
    assert f"sha256 {trace.sha256}" in page.read_text()
    assert str(tmp_path) not in "".join(pages(site).values())
    shutil.rmtree(folder)
    assert build_site([run], site).traces == [found]


def test_pages_allow_exactly_what_they_hold(make: Make, tmp_path: Path) -> None:
    build_site([make("one")], tmp_path / "site")
    for text in pages(tmp_path / "site").values():
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert policy[1].startswith("default-src &#39;none&#39;; ")
        assert "unsafe" not in policy[1]
        for part in re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", text, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
            assert f"sha256-{digest}" in policy[1].replace("&#43;", "+")
        assert not re.search(
            r"(?:src|style)=|https?://", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        )


def test_text_of_others_stays_text(make: Make, synthetic: ModuleType, tmp_path: Path) -> None:
    target = msgspec.structs.replace(synthetic.run_info().target, model=HOSTILE, server=HOSTILE)
    trace = TraceRef(name=HOSTILE, path="", sha256="ab" * 32)
    run = make("one", target=target, trace=trace)
    index = build_site([run], tmp_path / "site", title=HOSTILE)
    assert index.traces[0].id.startswith("script-script-window-hacked-1-script")
    for text in pages(tmp_path / "site").values():
        assert "<img" not in text
        assert text.count("<script>") == 1
    feed = ElementTree.fromstring((tmp_path / "site" / "feed.xml").read_bytes())
    assert feed.findtext(f"{ATOM}title") == HOSTILE.replace("\u0007", "\ufffd")


def test_feed(make: Make, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_site([make("one"), make("two", 2)], site, url="https://x.example/s")
    feed = ElementTree.fromstring((site / "feed.xml").read_bytes())
    assert feed.findtext(f"{ATOM}updated") == "2025-11-02T10:00:00+00:00"
    entries = feed.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in entries] == [
        "two: crawl-20251129",
        "one: crawl-20251129",
    ]
    ids = [entry.findtext(f"{ATOM}id") or "" for entry in entries]
    assert len(set(ids)) == 2
    link = entries[0].find(f"{ATOM}link")
    assert link is not None
    assert (link.get("href") or "").startswith("https://x.example/s/runs/two-")
    summary = entries[0].findtext(f"{ATOM}summary") or ""
    assert summary.startswith(
        "degraded run; SmolLM2-135M-Instruct; vllm 0.32.0; streaming gain 4.0x"
    )
    build_site([], site, url="https://y.example")
    moved = ElementTree.fromstring((site / "feed.xml").read_bytes())
    assert [e.findtext(f"{ATOM}id") for e in moved.findall(f"{ATOM}entry")] == ids


def test_a_run_without_a_date(make: Make, tmp_path: Path) -> None:
    build_site([make("one", created_utc="")], tmp_path / "site")
    feed = ElementTree.fromstring((tmp_path / "site" / "feed.xml").read_bytes())
    assert feed.findtext(f"{ATOM}updated") == "1970-01-01T00:00:00+00:00"


def test_runs_are_found_below_folders(make: Make, tmp_path: Path) -> None:
    make("sweep/a"), make("sweep/b"), make("c")
    (tmp_path / "runs" / "unfinished").mkdir()
    found = runs_in([tmp_path / "runs" / "c", tmp_path / "runs"])
    assert [run.path.name for run in found] == ["c", "a", "b"]
    for path in (tmp_path / "runs" / "unfinished", tmp_path / "nowhere"):
        with pytest.raises(SiteError, match="no run in it"):
            runs_in([path])
    (tmp_path / "runs" / "c" / "run.json").write_text("{")
    with pytest.raises(RunError, match="damaged"):
        runs_in([tmp_path / "runs"])


def test_runs_of_a_sweep_are_named_with_it(make: Make, tmp_path: Path) -> None:
    run = make("night/rate-2")
    (run.path.parent / "sweep.json").write_text("{}")
    [entry] = build_site([run], tmp_path / "site").runs
    assert entry.name == "night/rate-2"
    assert entry.id.startswith("night-rate-2-")


def test_what_is_not_ours_is_left_alone(make: Make, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(SiteError, match=r"has an index\.html and no site\.json"):
        build_site([make("one")], tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"
    assert not (tmp_path / "feed.xml").exists()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "damaged"),
        (b"[]", "site format None"),
        (b'{"format": "s2l-site/2"}', "site format 's2l-site/2'"),
        (b'{"format": "s2l-site/1", "runs": 3}', "damaged"),
        (
            b'{"format": "s2l-site/1", "traces": [{"id": "../x", "name": "", "sha256": ""}]}',
            "'../x' is no name of a page",
        ),
        (
            b'{"format": "s2l-site/1", "traces": [{"id": "a..b", "name": "", "sha256": ""}]}',
            "no name of a page",
        ),
    ],
)
def test_an_index_that_cannot_be_used(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "site.json").write_bytes(data)
    with pytest.raises(SiteError, match=re.escape(why)):
        read_index(tmp_path)


def test_an_index_comes_back(make: Make, tmp_path: Path) -> None:
    index = build_site([make("one")], tmp_path / "site")
    assert decode_index(index.encode(), "x") == index
    assert decode_index(SiteIndex().encode(), "x") == SiteIndex()


def test_names_for_addresses() -> None:
    assert slug("Crawl of 2025/11 (é)") == "crawl-of-2025-11"
    assert slug("…") == "unnamed"
    assert len(slug("x" * 500)) == 60


def test_layouts(tmp_path: Path) -> None:
    assert pages_folder(tmp_path) == tmp_path
    (tmp_path / ".git").mkdir()
    assert pages_folder(tmp_path) == tmp_path / "docs"
    write_no_jekyll(tmp_path)
    assert (tmp_path / ".nojekyll").read_bytes() == b""
    front = space_card('A "title": x').split("---")[1]
    assert 'title: "A \\"title\\": x"' in front
    assert "sdk: static" in front
    assert "app_file: index.html" in front


@pytest.mark.browser
def test_sorting_and_filtering_in_a_browser(
    make: Make, synthetic: ModuleType, tmp_path: Path
) -> None:
    sync_api = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "the tests need Chromium: make browser"
    valid = msgspec.structs.replace(synthetic.run_info().validity, verdict="valid", findings=[])
    other = msgspec.structs.replace(synthetic.run_info().target, model=HOSTILE)
    runs = [make("alpha"), make("beta", 3, validity=valid), make("gamma", 2, target=other)]
    build_site(runs, tmp_path / "site", title=HOSTILE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "site" / "index.html").as_uri())
        names = page.locator(".index tbody tr:visible td.title a")
        assert names.all_inner_texts() == ["beta", "gamma", "alpha"]
        page.get_by_role("button", name="Run").focus()
        page.keyboard.press("Enter")
        assert names.all_inner_texts() == ["alpha", "gamma", "beta"]
        page.get_by_label("Filter").fill("onerror smollm2")
        assert names.all_inner_texts() == []
        page.get_by_label("Filter").fill("ONERROR")
        page.get_by_label("Filter").press("Enter")
        assert names.all_inner_texts() == ["gamma"]
        assert page.locator("#shown").inner_text() == "1 of 3 runs"
        page.get_by_label("Filter").fill("")
        page.get_by_label("Verdict").select_option("valid")
        assert names.all_inner_texts() == ["beta"]
        page.evaluate(AXE)
        assert page.evaluate("axe.run()")["violations"] == []
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        names.first.click()
        assert page.locator("h1").first.inner_text() == "crawl-20251129"
        assert page.evaluate("window.hacked") is None
        assert said == []
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        browser.close()


def test_json_is_for_others_to_read(make: Make, tmp_path: Path) -> None:
    build_site([make("one")], tmp_path / "site")
    found = json.loads((tmp_path / "site" / "site.json").read_bytes())
    assert found["format"] == "s2l-site/1"
    assert found["runs"][0]["deliveries"][0]["delivery"] == "stream"
