from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from click.testing import CliRunner, Result

from s2l.commands.report import report
from s2l.replayer.run import Run
from s2l.reports.html import write_html


@pytest.fixture
def run(synthetic: ModuleType, tmp_path: Path) -> Path:
    return synthetic.realistic(tmp_path / "run")


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(report, [str(argument) for argument in arguments])


def test_one_run(run: Path) -> None:
    result = called(run)
    assert result.exit_code == 0
    assert (run / "report.html").stat().st_size > 900_000
    assert "5.2x sooner" in result.stderr


def test_limits_for_goodput(run: Path) -> None:
    result = called(run, "--slo", "ttft_s<500ms", "--json")
    stream, wait = msgspec.json.decode(result.stdout)["deliveries"]
    assert (stream["slo"]["met"], stream["slo"]["attainment"]) == (12, 1.0)
    assert wait["slo"]["met"] == 0
    assert called(run, "--slo", "ttft<1").exit_code == 2


def test_several_runs_on_one_page(synthetic: ModuleType, run: Path, tmp_path: Path) -> None:
    other = synthetic.changing(tmp_path / "other")
    page = tmp_path / "all.html"
    result = called(run, other, "--out", page, "--json")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert page.read_text().count("<article") == 2
    assert not (run / "report.html").exists()
    assert called(run, other).exit_code == 0
    assert (other / "report.html").exists()


def test_a_sweep(synthetic: ModuleType, tmp_path: Path) -> None:
    path = synthetic.sweep(tmp_path / "sweep", 12)
    result = called(path)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stderr.splitlines()]
    assert ["0.5", "stream", "valid"] in [line[:3] for line in lines]
    assert ["4", "wait", "valid"] in [line[:3] for line in lines]
    assert (path / "report.html").exists()
    assert (path / "rate-4" / "report.html").exists()
    refused = called(path, path, "--out", tmp_path / "a.html")
    assert refused.exit_code == 2
    assert "--out takes one sweep, or several runs" in refused.stderr


@pytest.mark.parametrize("name", ["no/a.html", "file/a.html", "folder"])
def test_an_error_names_the_page_itself(run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"\[Errno \d+\]") as raised:
        write_html(Run.open(run), tmp_path / name)
    assert raised.value.filename == str(tmp_path / name)
    assert [file.name for file in tmp_path.rglob("*.tmp")] == []
