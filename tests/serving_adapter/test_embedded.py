"""The embedded engine's surroundings: its model, prepared once, and its logs, so many of them."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from s2l.serving_adapter.embedded import engine_logs, model, server
from s2l.serving_adapter.embedded.server import EmbeddedServer, EngineError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "s2l"


def test_only_the_newest_logs_are_kept(cache: Path) -> None:
    folder = cache / "logs"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"engine-{number}.log").touch()
        os.utime(folder / f"engine-{number}.log", (number, number))
    (folder / "notes.txt").touch()
    path = engine_logs.new_log_path()
    path.touch()
    kept = {f"engine-{number}.log" for number in range(11, 30)}
    assert {one.name for one in folder.iterdir()} == kept | {"notes.txt", path.name}
    assert len(kept) + 1 == engine_logs.KEPT


def test_no_two_engines_share_a_log(cache: Path) -> None:
    assert len({engine_logs.new_log_path() for _ in range(5)}) == 5


def test_a_model_is_prepared_once_however_many_want_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = []

    def convert(gguf: Path, target: Path) -> None:
        converted.append(target)
        (target / "config.json").touch()

    monkeypatch.setattr(model, "_gguf_folder", lambda: cache)
    monkeypatch.setattr(model, "_convert", convert)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: model.prepare(), range(8)))
    assert {one.source for one in made} == {str(cache / "models" / model.MODEL_NAME)}
    assert len(converted) == 1
    assert model.is_prepared()


async def test_an_engine_that_never_gets_ready_is_told_in_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = cache.parent / "python"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr(server, "START_TIMEOUT_S", 0.3)
    monkeypatch.setattr(server, "check_installed", lambda: None)
    monkeypatch.setattr(sys, "executable", str(silent))
    embedded = EmbeddedServer(model.Model("folder", "name"))
    with pytest.raises(EngineError, match=r"the engine was not ready within 0.3 s \(log: "):
        async with embedded:
            pass
    assert embedded.log_path.parent == cache / "logs"
    assert await embedded.wait() == -signal.SIGTERM
