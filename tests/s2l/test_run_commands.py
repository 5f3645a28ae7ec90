"""The commands that work on finished runs, as a user types them."""

import asyncio
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from s2l.exits import FAILED, USAGE
from s2l.replayer.run import Run, Validity
from s2l.reports.scores import JUDGE, SIMILARITY, read_scores, read_sources

KEY = "sk-canary-7c1f"
SYNTHETIC = Path(__file__).parents[1] / "reports" / "synthetic_run.py"


@pytest.fixture(scope="module")
def synthetic() -> ModuleType:
    """The module that writes run folders."""
    spec = importlib.util.spec_from_file_location("synthetic_run_of_commands", SYNTHETIC)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs(synthetic: ModuleType, tmp_path: Path) -> Path:
    """``runs/a`` and ``runs/b``, half as fast: ten queries, right answers."""
    for name, ttft_us in (("a", 200_000), ("b", 400_000)):
        rows = [
            synthetic.request(
                request_id=f"r{i}", query_id=f"q{i}", first_token_us=1_000_000 + ttft_us, rate=1.0
            )
            for i in range(10)
        ]
        queries = [(f"q{i}", f"question {i}", ["functools"]) for i in range(10)]
        info = synthetic.run_info(validity=Validity(verdict="valid"))
        table = synthetic.request_table(*rows)
        synthetic.write_run(tmp_path / "runs" / name, table, queries=queries, info=info)
    (tmp_path / "runs" / "sweep").mkdir()
    (tmp_path / "runs" / "sweep" / "sweep.json").write_text('{"points": []}')
    return tmp_path / "runs"


def test_compare(s2l: Any, here: Any, runs: Path, tmp_path: Path) -> None:
    both = (runs / "a", runs / "b")
    shown = s2l("compare", *both, "--html", "c.html", "--fail-if", "ttft_s.p50 > +150%")
    assert (shown.code, shown.out) == (0, "")
    said = " ".join(shown.err.split())
    assert "stream: B is slower in TTFT at p50 by 100 % [100, 100]" in said
    assert "passed ttft_s.p50 > +150% (b): stream: +100 % [100, 100]" in said
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    failed = here("compare", *both, "--json", "--slo", "ttft_s<300ms", "--fail-if", "goodput < -5%")
    assert failed.code == FAILED
    [one] = failed.json()["comparisons"]
    assert any("goodput of B is lower by 100 %" in sentence for sentence in one["sentences"])
    marked = here("compare", *both, "--markdown")
    assert (marked.code, marked.out.splitlines()[0][:8]) == (0, "- **A** ")


def test_what_cannot_be_compared(here: Any, runs: Path, synthetic: ModuleType) -> None:
    late = synthetic.request(query_id="q0", request_id="r0", rate=1.0, prompt_tokens=300)
    synthetic.write_run(runs / "other", synthetic.request_table(late))
    result = here("compare", runs / "a", runs / "other")
    assert result.code == USAGE
    assert "cannot be compared: stream: other requests were planned" in result.err
    assert "other prompt token counts (they differ by 200 %" in result.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("compare", "runs/a"), "two runs at least"),
        (("compare", "runs/a", "nowhere"), "no such run folder"),
        (("compare", "runs/a", "runs/sweep"), "no point of this sweep has a run"),
        (("compare", "runs/a", "runs/b", "--fail-if", "ttft"), "write it as 'ttft_s.p95 > +5%'"),
        (("compare", "runs/a", "runs/b", "--slo", "ttft_s:p95<1s"), "write it as ttft_s<500ms"),
        (("compare", "runs/a", "runs/b", "--token-tolerance", "x"), "write it as 5%"),
        (("export", "runs/a", "runs/b", "--format", "csv"), "takes one run"),
        (("export", "runs/a", "--format", "pdf", "--out", "x.svg"), "does not end with .pdf"),
        (("export", "runs/a", "runs/b", "--format", "svg"), "two rates or more"),
        (("export", "runs/a", "--format", "csv", "--out", "no/a.csv"), "no/a.csv"),
        (("report", "runs/a", "--out", "no/a.html"), "s2l: no/a.html: No such file or directory"),
        (("publish",), "name one place"),
        (("publish", "--to", "a", "--space", "b/c"), "name one place"),
        (("publish", "nowhere", "--to", "site"), "no run in it"),
        (("publish", "runs", "--space", "nobody"), "write user/name"),
        (("publish", "runs", "--to", "s", "--site-url", "x"), "write it with https://"),
        (("score", "runs/a"), "nothing to do"),
        (("score", "runs/a", "--judge", "http://x"), "belong together"),
        (("score", "runs/a", "--judge", "x:1", "--judge-model", "m"), "no address of a server"),
        (("import-run", "nowhere.csv"), "no such file"),
    ],
)
def test_bad_usage(here: Any, runs: Path, arguments: tuple[str, ...], why: str) -> None:
    result = here(*arguments)
    assert (result.code, result.out) == (USAGE, "")
    assert result.err.startswith("s2l: ")
    assert result.err.count("\n") == 1
    assert why in result.err


def test_export(here: Any, runs: Path, tmp_path: Path) -> None:
    assert here("export", runs / "a", "--format", "csv").code == 0
    assert (runs / "a" / "metrics.csv").read_text().startswith("request_id,")
    assert here("export", runs / "a", "--format", "pdf", "--out", "f.pdf").code == 0
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")


def test_a_log_of_others_is_imported_and_reported(here: Any, tmp_path: Path) -> None:
    head = "event_timestamp,event_type,query_id,request_id,stream,duration_secs,replay_rate"
    rows = [f"{100 + i},query_ttft,{i},r{i},{i % 2 == 0},0.{i + 1:02},4.0" for i in range(12)]
    (tmp_path / "run_metrics.csv").write_text("\n".join([head, *rows, "x,y,z"]) + "\n")
    result = here("import-run", "run_metrics.csv", "--out", "runs/theirs")
    assert result.code == 0
    assert "line 14" in result.err
    summary = here("report", "runs/theirs", "--json").json()
    found = {one["delivery"]: one["latencies"]["ttft_s"]["p50"] for one in summary["deliveries"]}
    assert found == pytest.approx({"stream": 0.06, "wait": 0.07})
    assert (tmp_path / "runs" / "theirs" / "report.html").is_file()


def test_publish(here: Any, runs: Path, tmp_path: Path) -> None:
    assert here("publish", "--to", "site", "--title", "Ours").code == 0
    index = json.loads((tmp_path / "site" / "site.json").read_bytes())
    assert [one["name"] for one in index["runs"]] == ["a", "b"]
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    result = here("publish", runs / "a", "--github-pages", "repo")
    assert result.code == 0
    assert "folder /docs" in result.err
    assert (tmp_path / "repo" / "docs" / ".nojekyll").is_file()
    assert (tmp_path / "repo" / "docs" / "index.html").is_file()


class Judge:
    """Says that everything is correct, to whoever has the key."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0

    async def handle(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.Response(status=401, text="no such key")
        self.asked += 1
        message = {"role": "assistant", "content": "GRADE: CORRECT"}
        usage = {"prompt_tokens": 200, "completion_tokens": 4}
        return web.json_response({"choices": [{"message": message}], "usage": usage})


@pytest.fixture
def judge() -> Iterator[Judge]:
    found, loop, started = Judge(), asyncio.new_event_loop(), threading.Event()

    def work() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", found.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        loop.run_until_complete(runner.setup())
        loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert started.wait(10)
    yield found
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def test_a_judge_grades_and_its_key_stays_secret(
    s2l: Any, here: Any, runs: Path, judge: Judge, tmp_path: Path
) -> None:
    command = ("score", "runs/a", "--judge", judge.url, "--judge-model", "m", "--cache", "kept")
    refused = s2l(*command)
    assert refused.code == FAILED
    assert "401: no such key" in refused.message
    done = s2l(*command, environment={"S2L_JUDGE_API_KEY": KEY})
    assert done.code == 0
    assert "judge: 10 correct" in done.err
    assert "cost: 2,000 prompt and 40 completion tokens; of 10 replies, 0 had been" in done.err
    assert judge.asked == 10
    assert here(*command).code == 0
    assert judge.asked == 10
    scores = read_scores(Run.open(runs / "a"))
    assert scores["value"].to_pylist() == [1.0] * 10
    source = read_sources(Run.open(runs / "a"))[JUDGE]
    assert (source.model, source.url, source.cached_requests) == ("m", judge.url, 10)
    assert here("report", "runs/a").code == 0
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in written
    assert KEY not in refused.err + done.err + done.out


def test_similarity_by_the_packaged_model(here: Any, runs: Path) -> None:
    done = here("score", "runs/a", "--similarity")
    assert done.code == 0
    assert "semantic_similarity: 10 of 10 answers scored, mean 1.000" in done.err
    found = Run.open(runs / "a")
    assert read_scores(found)["value"].to_pylist() == pytest.approx([1.0] * 10, abs=1e-6)
    assert read_sources(found)[SIMILARITY].model.startswith("all-MiniLM-L6-v2@")
