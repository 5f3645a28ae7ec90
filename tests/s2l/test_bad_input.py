"""Every kind of bad input is one line that says what is wrong, and the right exit code."""

import json
import shutil
import socket
from pathlib import Path

import pytest

from s2l.exits import FAILED, USAGE


@pytest.fixture
def copy(crawled: Path, tmp_path: Path) -> Path:
    """A trace that may be damaged."""
    return Path(shutil.copytree(crawled, tmp_path / "copy"))


@pytest.mark.parametrize("command", [("replay",), ("dataset", "info"), ("dataset", "validate")])
def test_a_missing_trace(here, command: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    result = here(*command, "nowhere")
    assert result.code == USAGE
    assert "nowhere" in result.message


def test_no_trace_at_all(here) -> None:  # type: ignore[no-untyped-def]
    result = here("replay")
    assert result.code == USAGE
    assert "record one with: s2l collect crawl" in result.message


def test_no_run_at_all(here) -> None:  # type: ignore[no-untyped-def]
    assert "make one with: s2l replay" in here("report").message
    assert here("report", "nowhere").code == USAGE


def test_a_folder_that_is_no_trace(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "photos").mkdir()
    result = here("replay", "photos", "--qps", "1")
    assert result.code == USAGE
    assert "photos" in result.message


def test_a_newer_major_format(here, copy: Path) -> None:  # type: ignore[no-untyped-def]
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace("s2l-trace/1", "s2l-trace/2"))
    result = here("replay", copy)
    assert result.code == USAGE
    assert "s2l-trace/2" in result.message
    assert "s2l-trace/1" in result.message


def test_a_truncated_parquet_file(here, copy: Path) -> None:  # type: ignore[no-untyped-def]
    part = next((copy / "arrivals").iterdir())
    part.write_bytes(part.read_bytes()[:-100])
    for command in (("replay",), ("dataset", "info")):
        result = here(*command, copy)
        assert result.code == USAGE
        assert part.name in result.message


def test_a_newer_run(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps({"format": "s2l-run/2"}))
    result = here("report", "run")
    assert result.code == USAGE
    assert "s2l-run/2" in result.message


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--qps", "0"), "0 is out of range"),
        (("--qps", "-1"), "-1 is out of range"),
        (("--qps", "nan"), "nan is out of range"),
        (("--qps", "inf"), "inf is out of range"),
        (("--qps", "abc"), "'abc' is not a number"),
        (("--queries", "0"), "--queries"),
        (("--time-scale", "0"), "out of range"),
        (("--max-tokens", "0"), "--max-tokens"),
        (("--context-tokens", "-5"), "--context-tokens"),
        (("--arrivals", "sometimes"), "'sometimes' is not one of"),
        (("--delivery", "pigeon"), "'pigeon' is not one of"),
        (("--target", "localhost:8000"), "not a server address"),
        (("--target", "http://u:p@host"), "S2L_API_KEY"),
        (("--target", "http://127.0.0.1:9"), "--target needs --qps"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_bad_options(  # type: ignore[no-untyped-def]
    here, crawled: Path, arguments: tuple[str, ...], what: str
) -> None:
    result = here("replay", crawled, *arguments)
    assert result.code == USAGE
    assert what in result.message
    assert result.out == ""


def test_a_target_that_refuses(  # type: ignore[no-untyped-def]
    here, crawled: Path, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    result = here("replay", crawled, "--qps", "1", "--target", url)
    assert result.code == FAILED
    assert "cannot connect" in result.message


def test_a_target_that_speaks_something_else(  # type: ignore[no-untyped-def]
    here, crawled: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.listen()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        import threading

        def hang_up() -> None:
            for _ in range(2):  # it is asked in one protocol, then in the other
                peer, _ = server.accept()
                peer.recv(1024)
                peer.sendall(b"220 mail.example ESMTP\r\n")
                peer.close()

        threading.Thread(target=hang_up, daemon=True).start()
        result = here("replay", crawled, "--qps", "1", "--target", url)
    assert result.code == FAILED
    assert "speaks neither the Realtime API nor" in result.message


def test_a_model_that_does_not_exist(s2l, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "empty").mkdir()
    offline = {"HF_HUB_OFFLINE": "1"}
    for name in ("no-such-model", "nobody/no-such-model"):
        result = s2l("serve", name, environment=offline)
        assert result.code == USAGE
        assert "does not exist" in result.message
    assert "no config.json" in s2l("serve", "empty").message


def test_no_free_port(s2l) -> None:  # type: ignore[no-untyped-def]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in ("mock", "serve", "site"):
            result = s2l(command, "--port", port)
            assert result.code == FAILED, result.err
            assert port in result.message or "in use" in result.message


def test_questions_that_cannot_be_read(  # type: ignore[no-untyped-def]
    here, tmp_path: Path
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"query": "fine?"}\n{"no": "question"}\n')
    result = here("collect", "crawl", "--queries", "bad.jsonl")
    assert result.code == USAGE
    assert "bad.jsonl" in result.message
    assert "2" in result.message
    assert here("collect", "crawl", "--queries", "none.jsonl").code == USAGE


def test_a_full_disk_while_collecting_keeps_what_is_there(  # type: ignore[no-untyped-def]
    s2l, here
) -> None:
    crawl = ("collect", "crawl", "-n", "6", "--speed", "20", "--concurrency", "1", "--out", "trace")
    result = s2l(*crawl, limit_bytes=60_000)
    assert result.code == FAILED
    assert "File too large" in result.message
    found = here("dataset", "validate", "trace")
    assert found.code == FAILED
    assert "unfinished" in found.err
    assert here("dataset", "recover", "trace").code == 0
    info = here("dataset", "info", "trace", "--json").json()
    assert info["arrivals"].get("search", 0) >= 1
    assert here("dataset", "validate", "trace").code == 0


def test_a_full_disk_while_writing_a_run(  # type: ignore[no-untyped-def]
    s2l, crawled: Path, mock_url: str
) -> None:
    options = ("--qps", "20", "--time-scale", "0.05", "--target", mock_url, "--out", "run")
    result = s2l("replay", crawled, *options, limit_bytes=1_000)
    assert result.code == FAILED
    assert "cannot write the run" in result.message
