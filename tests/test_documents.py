"""The documents tell the truth: what they name exists."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
from prometheus_client.metrics import MetricWrapperBase

from s2l.cli import COMMANDS, program
from s2l.collectors.ann.indexes.registry import INDEX_KINDS
from s2l.collectors.failure import CODES
from s2l.collectors.searching.registry import SEARCH_PROVIDERS
from s2l.replayer.document_order import ORDERS
from s2l.reports.slo import SLO_METRICS
from s2l.serving_adapter.realtime import metrics
from s2l.serving_adapter.realtime.limits import PREFIX, Limits
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES
from s2l.workloads.arrival_process import ARRIVAL_PROCESSES
from s2l.workloads.privacy import HIDE

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)
SERVER = "http://127.0.0.1:8001"
"""What ``$T`` stands for in the documents."""


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_command_is_documented() -> None:
    readme = _text("README.md")
    for command in COMMANDS:
        assert f"s2l {command}" in readme, command


def test_commands_that_are_named_exist() -> None:
    for name in DOCUMENTS:
        for command in re.findall(r"`s2l ([a-z][a-z-]*)", _text(name)):
            assert command in COMMANDS, f"{name}: s2l {command}"


def _command_lines() -> Iterator[tuple[str, str]]:
    """(document, line) of every call of the program in a console block."""
    for name in DOCUMENTS:
        for block in re.findall(r"```console\n(.*?)```", _text(name), re.DOTALL):
            for line in block.splitlines():
                if line.startswith("s2l "):
                    yield name, line


@pytest.mark.parametrize(("name", "line"), list(_command_lines()))
def test_command_lines_are_parsed(name: str, line: str) -> None:
    command: click.Command = program
    words = shlex.split(line.replace("$T", SERVER), comments=True)[1:]
    with click.Context(program) as context:
        while isinstance(command, click.Group):
            found = command.get_command(context, words.pop(0))
            assert found is not None, line
            command = found
        command.make_context(line, words, parent=context)


def test_files_that_are_linked_exist() -> None:
    for name in DOCUMENTS:
        folder = (ROOT / name).parent
        for link in re.findall(r"\]\(([^)#:]+)\)", _text(name)):
            assert (folder / link).exists(), f"{name}: {link}"


def test_limits_and_metrics_of_the_server_are_documented() -> None:
    serving = _text("docs/serving.md")
    for field in fields(Limits):
        assert f"`{PREFIX}{field.name.upper()}`" in serving
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            assert f"`{metric.describe()[0].name}" in serving
    for mode in PREFILL_MODES:
        assert f"| `{mode}`" in serving


def test_make_targets_that_are_named_exist() -> None:
    makefile = _text("Makefile")
    for name in DOCUMENTS:
        for target in re.findall(r"make ([a-z-]+)`", _text(name)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name}: make {target}"


def test_every_failure_code_is_documented() -> None:
    table = _text("docs/failure-codes.md")
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in table


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("docs/capturing.md", SEARCH_PROVIDERS),
        ("docs/capturing.md", INDEX_KINDS),
        ("docs/replaying.md", [form.syntax for form in ARRIVAL_PROCESSES.values()]),
        ("docs/replaying.md", ORDERS),
        ("docs/replaying.md", SLO_METRICS),
        ("docs/sharing.md", HIDE),
    ],
)
def test_choices_are_documented(name: str, choices: list[str]) -> None:
    text = _text(name)
    missing = [
        choice for choice in choices if f"`{choice.replace('PATH', 'delays.txt')}`" not in text
    ]
    assert not missing


def test_every_check_of_the_verdict_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "replayer").rglob("*.py")]
    checks = {name for text in sources for name in re.findall(r'check="([a-z_]+)"', text)}
    assert len(checks) > 10
    table = _text("docs/replaying.md")
    missing = sorted(name for name in checks if f"`{name}`" not in table)
    assert not missing
