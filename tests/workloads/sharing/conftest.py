"""The Hub that the program takes for the real one, and traces on it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.sharing.cache import TraceCache
from s2l.workloads.sharing.packaging import package
from s2l.workloads.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2]))
from fake_hub import FakeHub, running_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A running hub that the program takes for the real one."""
    with running_hub() as fake:
        monkeypatch.setenv("HF_ENDPOINT", fake.url)
        monkeypatch.setenv("HF_TOKEN", "hf_test")
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        # The library reads its environment when it is imported, which may have been before.
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("S2L_CACHE", str(tmp_path / "cache"))
        yield fake


@pytest.fixture
def cache(tmp_path: Path) -> TraceCache:
    """An empty cache."""
    return TraceCache(tmp_path / "cache")


@pytest.fixture
def ready(trace_path: Path, tmp_path: Path) -> Trace:
    """The small trace, packaged."""
    return package(Trace.open(trace_path), tmp_path / "ready")


def content_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def content() -> Any:
    """``content_of``; tests are not importable packages."""
    return content_of


@pytest.fixture
def published(hub: Any, ready: Trace, content: Any) -> str:
    """The small trace on the hub; its commit."""
    oid: str = hub.commit("me/small", "main", content(ready.path))
    return oid
