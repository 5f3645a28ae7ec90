"""``s2l mock`` as a process of its own, on its own event loop, by signals and by its options."""

import itertools
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

S2L = Path(sys.executable).with_name("s2l")
MS = 1_000_000


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command on a free port, and its address."""
    command = [str(S2L), "mock", "--port", "0", "--json", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            found = json.loads(process.stdout.readline())
            assert found["pid"] == process.pid
            yield process, found["url"]
        finally:
            process.kill()


def ask(url: str, **fields: Any) -> dict[str, Any]:
    """One answer that is not streamed."""
    body = json.dumps({"prompt": "one two three", **fields}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        answer: dict[str, Any] = json.loads(response.read())
    return answer


def lines(path: Path) -> list[dict[str, Any]]:
    """A log file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_by_a_signal_and_the_log_is_whole(tmp_path: Path, how: signal.Signals) -> None:
    log = tmp_path / "log.jsonl"
    options = ["--ttft-ms", "5", "--tpot-ms", "2", "--output-tokens", "3", "--log", str(log)]
    with running(*options) as (process, url):
        answers = [ask(url) for _ in range(3)]
        process.send_signal(how)
        assert process.wait(20) == 0
    assert [a["usage"]["completion_tokens"] for a in answers] == [3, 3, 3]
    entries = lines(log)
    assert [entry["number"] for entry in entries] == [1, 2, 3]
    for entry in entries:
        assert entry["last_due_ns"] == entry["arrived_ns"] + (5 + 2 * 2) * MS
        assert entry["last_due_ns"] <= entry["last_ns"]


def test_prefill_is_charged_by_the_token_and_cached_tokens_are_free() -> None:
    options = ["--prefill-tokens-per-s", "1000", "--overhead-ms", "1", "--tpot-ms", "0"]
    with running(*options) as (_, url):
        prompt = "word " * 64
        first, again = (ask(url, prompt=prompt, max_tokens=1) for _ in range(2))
        with urllib.request.urlopen(f"{url}/mock/log") as response:
            log = [json.loads(line) for line in response.read().splitlines()]
    cached = [a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in (first, again)]
    assert cached == [0, 64]
    assert [e["last_due_ns"] - e["arrived_ns"] for e in log] == [(1 + 65) * MS, (1 + 1) * MS]


def test_death_by_schedule_is_a_failure_of_the_command() -> None:
    with running("--fault", "die@0.3s") as (process, url):
        assert process.wait(20) == 1
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "ended by the fault that was asked for"
        with pytest.raises(urllib.error.URLError):
            ask(url)


def test_nothing_is_read_or_written_while_the_server_stalls(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with running("--ttft-ms", "1", "--fault", "stall@1s:0.5s", "--log", str(log)) as (process, url):
        longest_s, start_s = 0.0, time.monotonic()
        while longest_s < 0.3 and time.monotonic() - start_s < 10:
            asked_s = time.monotonic()
            ask(url, max_tokens=1)
            longest_s = max(longest_s, time.monotonic() - asked_s)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert 0.3 < longest_s < 5
    stamps = sorted(time_ns for e in lines(log) for time_ns in (e["arrived_ns"], e["last_ns"]))
    longest_ns = max(after - before for before, after in itertools.pairwise(stamps))
    assert 490 * MS < longest_ns < 5000 * MS


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--fault", "cut"], "'cut' is not a fault"),
        (["--fault", "cut@60%", "--fault", "500@60%"], "more than 100 % together"),
        (["--tpot-ms", "-1"], "--tpot-ms"),
        (["--prefill-tokens-per-s", "0"], "give a number above 0"),
        (["--log", "/no/such/folder/log"], "/no/such/folder/log"),
    ],
)
def test_bad_options_are_one_line(options: list[str], what: str) -> None:
    done = subprocess.run(
        [S2L, "mock", "--port", "0", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2)
    [line] = done.stderr.splitlines()
    assert what in line
