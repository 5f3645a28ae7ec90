"""Publishing: on a hub, on the web, in a folder; and being killed on the way."""

import os
import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi

from s2l.workloads.errors import TraceError
from s2l.workloads.sharing.address import HubAddress, WebAddress, parse_address
from s2l.workloads.sharing.cache import TraceCache
from s2l.workloads.sharing.errors import BadAddress, TransferFailed
from s2l.workloads.sharing.pulling import Puller
from s2l.workloads.sharing.pushing import push, push_to_folder
from s2l.workloads.trace import Trace


def test_what_was_pushed_to_the_hub_comes_back_the_same(
    hub: Any, cache: TraceCache, ready: Trace, content: Any
) -> None:
    pinned = push(ready, HubAddress("me/small"))
    assert pinned == f"hf:me/small@{hub.heads['me/small', 'main']}"
    seen = dict(hub.files("me/small"))
    del seen[".gitattributes"]
    assert seen == content(ready.path)
    pulled = Puller(cache).pull("hf:me/small")
    assert pulled.address == pinned
    assert content(pulled.path) == content(ready.path)


def test_a_new_version_is_one_commit_without_what_is_gone(hub: Any, ready: Trace) -> None:
    push(ready, HubAddress("me/small"))
    old = hub.commit("me/small", "main", {**hub.files("me/small"), "documents/old.parquet": b"x"})
    commits = len(hub.commits)
    push(ready, HubAddress("me/small"))
    assert len(hub.commits) == commits + 1
    assert "documents/old.parquet" in hub.commits[old]
    assert "documents/old.parquet" not in hub.files("me/small")


def test_a_branch_is_pushed_to_and_pulled(hub: Any, cache: TraceCache, ready: Trace) -> None:
    push(ready, HubAddress("me/small", "v2"))
    assert "manifest.json" in hub.files("me/small", "v2")
    assert "manifest.json" not in hub.files("me/small")
    assert Trace.open(Puller(cache).pull("hf:me/small@v2").path).sha256 == ready.sha256


def test_killed_in_the_middle_the_hub_is_as_it_was(
    hub: Any, cache: TraceCache, ready: Trace, tmp_path: Path
) -> None:
    hub.hold_put = 2
    command = [sys.executable, "-m", "s2l", "dataset", "push", "hf:me/small", str(ready.path)]
    pushing = subprocess.Popen(command, env=os.environ, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        assert hub.put_held.wait(60)
    finally:
        pushing.send_signal(signal.SIGKILL)
        pushing.wait()
    assert list(hub.files("me/small")) == [".gitattributes"]
    with pytest.raises(TransferFailed, match="answered 404"):
        Puller(cache).pull("hf:me/small")
    done = subprocess.run(command, env=os.environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Trace.open(Puller(cache).pull("hf:me/small").path).sha256 == ready.sha256


def test_a_commit_that_somebody_else_was_before(
    hub: Any, ready: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = HfApi.dataset_info

    def overtaken(api: HfApi, repo: str, **options: Any) -> Any:
        info = asked(api, repo, **options)
        hub.commit(repo, "main", {**hub.files(repo), "theirs.txt": b"theirs"})
        return info

    with monkeypatch.context() as patched:
        patched.setattr(HfApi, "dataset_info", overtaken)
        with pytest.raises(TransferFailed, match="no file was changed"):
            push(ready, HubAddress("me/small"))
    assert hub.files("me/small") == {".gitattributes": b"", "theirs.txt": b"theirs"}
    push(ready, HubAddress("me/small"))
    assert "theirs.txt" not in hub.files("me/small")


def test_a_pinned_address_cannot_be_pushed_to(hub: Any, ready: Trace) -> None:
    with pytest.raises(BadAddress, match="a commit cannot be pushed to"):
        push(ready, HubAddress("me/small", "a" * 40))
    assert hub.requests == []


def test_a_hub_that_is_not_there(
    ready: Trace, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused_port}")
    with pytest.raises(TransferFailed, match="no file was changed"):
        push(ready, HubAddress("me/small"))


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_an_archive_on_the_web(hub: Any, cache: TraceCache, ready: Trace, content: Any) -> None:
    pinned = push(ready, parse_address(f"{hub.url}/plain/a/small.tar"))
    digest = sha256(hub.plain["a/small.tar"]).hexdigest()
    assert pinned == f"{hub.url}/plain/a/small.tar#sha256={digest}"
    assert content(Puller(cache).pull(pinned).path) == content(ready.path)
    with pytest.raises(BadAddress, match="one archive is pushed"):
        push(ready, WebAddress(f"{hub.url}/plain/a/"))


def test_a_folder_is_there_as_a_whole(ready: Trace, tmp_path: Path, content: Any) -> None:
    target = tmp_path / "shared" / "small"
    assert push_to_folder(ready, target) == str(target)
    assert content(target) == content(ready.path)
    assert push_to_folder(ready, target) == str(target)
    assert [file.name for file in target.parent.iterdir()] == ["small"]
    (target / "manifest.json").write_text("{}")
    with pytest.raises(TraceError, match="other content"):
        push_to_folder(ready, target)


@pytest.mark.parametrize("name", ["queries.parquet", "documents/part-00000.parquet"])
@pytest.mark.parametrize("damage", ["gone", "other"])
def test_a_damaged_copy_is_not_already_there(
    ready: Trace, tmp_path: Path, name: str, damage: str
) -> None:
    target = tmp_path / "shared" / "small"
    push_to_folder(ready, target)
    file = target / name
    data = file.read_bytes()
    file.unlink()
    if damage == "other":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(TraceError, match=f"remove {target}, which is no whole copy, and push"):
        push_to_folder(ready, target)
    shutil.rmtree(target)
    assert Trace.open(Path(push_to_folder(ready, target))).sha256 == ready.sha256


def test_killed_in_the_middle_a_folder_is_not_there(
    ready: Trace, tmp_path: Path, content: Any
) -> None:
    target = tmp_path / "shared" / "small"
    script = (
        "import os, sys, signal, pathlib\n"
        "from s2l.workloads.sharing import pushing\n"
        "from s2l.workloads.trace import Trace\n"
        "pushing.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "pushing.push_to_folder(Trace.open(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", script, str(ready.path), str(target)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not target.exists()
    push_to_folder(ready, target)
    assert content(target) == content(ready.path)
    assert [file.name for file in target.parent.iterdir()] == ["small"]
