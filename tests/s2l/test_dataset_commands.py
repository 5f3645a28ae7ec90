"""Importing, exporting, stats and synth from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from s2l.cli import run
from s2l.workloads.trace import Trace

CSV = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,3,4\nbad,1,1\n"


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_import_names_what_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text(CSV)
    assert run(["dataset", "import", "a.csv", "--format", "azure", "--out", "t", "--json"]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert (facts["rows"], facts["used"], facts["left_out"]) == (2, 1, 1)
    assert "left out: a.csv, line 3: TIMESTAMP is 'bad'" in said.err
    assert Trace.open(Path("t")).manifest.collector.name == "import-azure"


def test_import_strict(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text(CSV)
    assert run(["dataset", "import", "a.csv", "--format", "azure", "--strict"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("s2l: a.csv, line 3: TIMESTAMP")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["import", "none", "--format", "azure"], "none: no such file or folder"),
        (["import", "none", "--format", "what"], "'what' is not one of"),
        (["synth"], "give one of --profile and --like"),
        (["synth", "--like", "none"], "none: no such trace folder"),
        (["stats", "none"], "none: no such trace folder"),
        (["export", "out", "none", "--format", "azure"], "none: no such trace folder"),
    ],
)
def test_one_line_for_a_mistake(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dataset", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert error in lines[0]


def test_synth_stats_export(capsys: pytest.CaptureFixture[str]) -> None:
    profile = ["--profile", "stream2llm-anns", "-n", "5", "--out", "a"]
    assert run(["dataset", "synth", *profile]) == 0
    assert run(["dataset", "synth", "--like", "a", "-n", "4", "--out", "b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["queries"] == 4
    assert run(["dataset", "stats", "a", "b", "--html", "page.html"]) == 0
    assert "Tokens of the final context, tokens" in capsys.readouterr().out
    assert Path("page.html").stat().st_size > 100_000
    assert run(["dataset", "stats", "a", "b", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["datasets"]) == 2
    assert run(["dataset", "export", "out", "a", "--format", "stream2llm-anns"]) == 0
    assert run(["dataset", "export", "out", "a", "--format", "stream2llm-anns"]) == 2
    assert "out: is there already" in capsys.readouterr().err


def test_help_imports_no_command() -> None:
    program = (
        "import sys; from s2l.cli import run; run(['dataset', '--help']);"
        "print([m for m in sys.modules if m.startswith('s2l.commands.dataset_')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.decode().splitlines()[-1] == "[]"
    assert b"synth" in found.stdout
