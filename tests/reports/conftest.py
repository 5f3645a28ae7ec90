import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s2l.replayer.run import Run


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The module that writes run folders."""
    return _load("synthetic_run")


@pytest.fixture
def make_run(synthetic: ModuleType, tmp_path: Path) -> Callable[..., Run]:
    """Writes the given request rows as a run folder and opens it."""

    def make(*rows: dict[str, Any], **more: Any) -> Run:
        path = synthetic.write_run(tmp_path / "run", synthetic.request_table(*rows), **more)
        return Run.open(path)

    return make


@pytest.fixture
def realistic(synthetic: ModuleType, tmp_path: Path) -> Run:
    """12 queries in both deliveries, one of them timed out."""
    return Run.open(synthetic.realistic(tmp_path / "replay-20251129"))


@pytest.fixture
def changing(synthetic: ModuleType, tmp_path: Path) -> Run:
    """12 queries in both deliveries, whose context is replaced 8 times when streaming."""
    return Run.open(synthetic.changing(tmp_path / "replay-changing"))
