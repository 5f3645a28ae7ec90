"""The documents tell the truth: what they name exists."""

import re
from dataclasses import fields
from pathlib import Path

import click
from prometheus_client.metrics import MetricWrapperBase

from s2l.cli import COMMANDS, program
from s2l.collectors.failure import CODES
from s2l.serving_adapter.realtime import metrics
from s2l.serving_adapter.realtime.limits import PREFIX, Limits
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/formats.md",
    "docs/serving.md",
)


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


def test_options_that_are_named_exist() -> None:
    for line in _text("README.md").splitlines():
        words = line.split()
        if words[:1] != ["s2l"]:
            continue
        command = program.get_command(None, words[1])  # type: ignore[arg-type]
        assert command is not None, line
        while isinstance(command, click.Group) and len(words) > 2:
            command = command.get_command(None, words.pop(2))  # type: ignore[arg-type]
        assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        code = line.partition("#")[0].split()
        assert {word for word in code if word.startswith("-")} <= known, line


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
