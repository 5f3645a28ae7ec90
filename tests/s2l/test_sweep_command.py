"""``s2l sweep`` as a user types it, against ``s2l mock``."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from s2l.cli import run as s2l_here
from s2l.exits import INTERRUPTED, USAGE

SHORT = ("--time-scale", "0.02", "--warmup", "1", "--no-calibrate", "--min-time", "500ms")
SHORT += ("--adapter", "openai")

StartMock = Callable[..., str]


@pytest.fixture
def trace() -> Path:
    """The shipped crawl: forty queries."""
    return Path(__file__).parents[2] / "datasets" / "demo-crawl"


@pytest.fixture
def start_mock(program: str) -> Iterator[StartMock]:
    """``start_mock("--tpot-ms", "5")``: the address of a mock server."""
    with ExitStack() as stack:

        def start(*options: str) -> str:
            command = [program, "mock", "--port", "0", "--json", *options]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
            stack.callback(process.terminate)
            assert process.stdout is not None
            url: str = json.loads(process.stdout.readline())["url"]
            return url

        yield start


def sweep_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "sweep.json").read_text())
    return found


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "give --qps 1,2,4 or 1..32 or 1..20:1, or --slo"),
        (("--qps", "4..1"), "'4..1' goes down"),
        (("--slo", "ttft_s<1s"), "names no percentile"),
        (("--qps", "1", "--first-qps", "2"), "leave it out with --qps"),
        (("--qps", "1", "--arrivals", "ramp:1..2/3s"), "has rates of its own"),
        (("--resume", "nowhere"), "nowhere: no sweep is in it"),
        (("--resume", "nowhere", "--qps", "1"), "leave out --qps"),
    ],
)
def test_what_does_not_fit_together(
    arguments: tuple[str, ...], what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = [] if "--resume" in arguments else ["--target", "http://127.0.0.1:9"]
    code = s2l_here(["sweep", *target, *arguments])
    said = capfd.readouterr().err
    assert code == USAGE, said
    assert what in said
    assert len(said.splitlines()) == 1


def test_a_sweep_is_not_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    options = ["--target", "http://127.0.0.1:9", "--qps", "1", "--out", str(tmp_path)]
    assert s2l_here(["sweep", *options]) == USAGE
    assert f"go on with --resume {tmp_path}" in capfd.readouterr().err


def test_a_list_of_rates(  # type: ignore[no-untyped-def]
    here, trace: Path, start_mock: StartMock, tmp_path: Path
) -> None:
    url = start_mock("--ttft-ms", "20", "--tpot-ms", "1")
    options = ("--qps", "20,40", "--slo", "ttft_s:p50<10s,tpot_s:p50<100us", *SHORT)
    result = here("sweep", trace, "--target", url, *options, "--min-requests", "10", "--json")
    assert result.code == 0, result.err
    (folder,) = (tmp_path / "runs").iterdir()
    sweep = sweep_in(folder)
    assert sweep == result.json()
    assert sweep["format"] == "s2l-sweep/1"
    rates = [point["rate_qps"] for point in sweep["points"]]
    if sweep["ended"] == "all rates were replayed":
        assert rates == [20, 40]
    else:  # where the machine is so busy that both deliveries are behind
        assert rates == [20]
    assert all(point["meets"] == {"wait": False, "stream": False} for point in sweep["points"])
    assert "(limit 10.0 s); tpot_s p50 " in sweep["points"][0]["why"]["wait"]
    assert sweep["points"][0]["why"]["wait"].endswith(" ms (limit 0.10 ms)")
    assert sweep["highest_qps"] == {"wait": None, "stream": None}
    run = folder / sweep["points"][0]["run"]
    assert json.loads((run / "run.json").read_text())["counts"]["succeeded"] == 20
    assert (folder / "report.html").stat().st_size > 100_000
    assert "wait: no rate met" in result.err


def test_a_search_finds_what_the_server_manages(  # type: ignore[no-untyped-def]
    here, trace: Path, start_mock: StartMock, tmp_path: Path
) -> None:
    """One request at a time of 20 ms and 20 tokens of 1 ms: 25 requests a second at the most."""
    url = start_mock("--ttft-ms", "20", "--tpot-ms", "1", "--max-concurrency", "1")
    options = ("--slo", "ttft_s:p50<5s", "--first-qps", "20", "--resolution", "1", *SHORT)
    options += ("--min-requests", "30", "--delivery", "wait", "--max-tokens", "20")
    result = here("sweep", trace, "--target", url, *options, "--out", "found")
    assert result.code == 0, result.err
    sweep = sweep_in(tmp_path / "found")
    met = {point["rate_qps"]: point["meets"]["wait"] for point in sweep["points"]}
    failed = min(rate for rate, is_met in met.items() if not is_met)
    assert failed <= 160  # 30 requests in 0.2 s, which take 1.2 s
    assert sweep["highest_qps"]["wait"] == failed / 2
    assert sweep["ended"] == "the search has closed in"
    assert f"wait: up to {failed / 2:g} requests/s met ttft_s:p50<5s" in result.err


def test_it_ends_at_saturation(  # type: ignore[no-untyped-def]
    here, trace: Path, start_mock: StartMock, tmp_path: Path
) -> None:
    """150 requests in 1.5 s, which the server needs 6 s for."""
    url = start_mock("--ttft-ms", "20", "--tpot-ms", "1", "--max-concurrency", "1")
    options = ("--qps", "100,200,400", "--delivery", "wait", "--max-tokens", "20", *SHORT)
    result = here("sweep", trace, "--target", url, *options, "--min-requests", "150")
    assert result.code == 0, result.err
    (folder,) = (tmp_path / "runs").iterdir()
    sweep = sweep_in(folder)
    assert [(point["rate_qps"], point["saturated"]) for point in sweep["points"]] == [
        (100, ["wait"])
    ]
    assert sweep["ended"] == "saturated at 100 requests/s; 2 higher rates were left out"


def test_an_interrupted_sweep_goes_on(  # type: ignore[no-untyped-def]
    here, program: str, trace: Path, start_mock: StartMock, tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    url = start_mock("--ttft-ms", "5", "--tpot-ms", "1")
    command = [program, "sweep", str(trace), "--target", url, "--qps", "50,20", *SHORT]
    command += ["--min-requests", "20", "--min-time", "1s"]
    # Options that JSON has no form for.
    Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    command += ["--tokenizer", str(tmp_path), "--arrivals", "gamma", "--burstiness", "inf"]
    with subprocess.Popen(
        [*command, "--out", str(folder)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("50 requests/s: 50 requests"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(30) == INTERRUPTED
    assert [point["rate_qps"] for point in sweep_in(folder)["points"]] == [20]
    first = (folder / "qps-20" / "run.json").read_bytes()
    assert "interrupted" in rest
    result = here("sweep", "--resume", folder, "--json")
    assert result.code == 0, result.err
    assert [point["rate_qps"] for point in result.json()["points"]] == [20, 50]
    assert (folder / "qps-20" / "run.json").read_bytes() == first
    assert result.json()["ended"] == "all rates were replayed"
    again = here("sweep", "--resume", folder, "--json")
    assert again.json() == result.json()
