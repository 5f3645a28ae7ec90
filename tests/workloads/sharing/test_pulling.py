"""Fetching: pinned, resumed, checked; never half-used."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.errors import TraceNotFound
from s2l.workloads.sharing.address import HubAddress, WebAddress, parse_address
from s2l.workloads.sharing.archive import write_archive
from s2l.workloads.sharing.cache import TraceCache
from s2l.workloads.sharing.errors import BadAddress, NotTrusted, TransferFailed
from s2l.workloads.sharing.pulling import Puller
from s2l.workloads.trace import Trace


def test_a_pinned_revision_is_asked_for_once(
    hub: Any, cache: TraceCache, published: str, ready: Trace
) -> None:
    address = f"hf:me/small@{published}"
    first = Puller(cache).pull(address)
    assert Trace.open(first.path).sha256 == ready.sha256
    asked = len(hub.requests)
    assert Puller(cache).pull(address) == first
    assert len(hub.requests) == asked


def test_the_token_stays_at_the_hub(hub: Any, cache: TraceCache, published: str) -> None:
    Puller(cache).pull("hf:me/small")
    assert hub.tokens["datasets"] == {"Bearer hf_test"}
    assert hub.tokens["store"] == {""}


def test_a_broken_connection_is_resumed(
    hub: Any, cache: TraceCache, published: str, ready: Trace
) -> None:
    hub.cut_after = 1_000
    told: list[tuple[int, int]] = []
    puller = Puller(cache, tell=lambda *done: told.append(done), first_wait_s=0)
    pulled = puller.pull("hf:me/small")
    assert Trace.open(pulled.path).sha256 == ready.sha256
    assert "bytes=1000-" in hub.ranges
    total = sum(entry.bytes for entry in ready.manifest.files)
    assert told[-1] == (total, total)


def test_what_is_here_is_kept_for_the_next_time(
    hub: Any, cache: TraceCache, published: str, ready: Trace
) -> None:
    hub.cut_after, hub.cuts = 100, 3
    with pytest.raises(TransferFailed, match="what was transferred is kept"):
        Puller(cache, first_wait_s=0).pull("hf:me/small")
    assert cache.entries() == []
    hub.cut_after = None
    hub.ranges.clear()
    assert Trace.open(Puller(cache).pull("hf:me/small").path).sha256 == ready.sha256
    assert hub.ranges


@pytest.mark.parametrize("name", ["queries.parquet", "README.md", "manifest.json"])
def test_other_content_than_promised_is_refused(
    hub: Any, cache: TraceCache, published: str, name: str
) -> None:
    hub.corrupt = name
    with pytest.raises(NotTrusted, match="refused"):
        Puller(cache).pull("hf:me/small")
    assert cache.entries() == []
    hub.corrupt = None
    Puller(cache).pull("hf:me/small")
    assert [one.address for one in cache.entries()] == [f"hf:me/small@{published}"]


def test_without_a_network_the_message_says_what_is_here(
    hub: Any, cache: TraceCache, published: str
) -> None:
    Puller(cache).pull("hf:me/small")
    with pytest.raises(TransferFailed, match=f"in the cache: hf:me/small@{published}"):
        Puller(cache).pull("hf:me/small@gone")


def test_a_folder_on_the_web(hub: Any, cache: TraceCache, ready: Trace, content: Any) -> None:
    hub.plain = {f"d/{name}": data for name, data in content(ready.path).items()}
    pulled = Puller(cache).pull(f"{hub.url}/plain/d/")
    assert pulled.address == f"{hub.url}/plain/d/#sha256={ready.sha256}"
    assert content(pulled.path) == content(ready.path)
    with pytest.raises(NotTrusted, match="not the one asked for"):
        Puller(cache).pull(f"{hub.url}/plain/d/#sha256={'0' * 64}")


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.zst"])
def test_archives(
    hub: Any, cache: TraceCache, ready: Trace, content: Any, tmp_path: Path, suffix: str
) -> None:
    archive = tmp_path / f"small{suffix}"
    write_archive(ready.path, ready.manifest, archive)
    hub.plain[archive.name] = archive.read_bytes()
    for address in (str(archive), f"{hub.url}/plain/{archive.name}"):
        assert content(Puller(cache).pull(address).path) == content(ready.path)
    hub.cut_after, hub.cuts = 700, 1
    with pytest.raises(TransferFailed):
        Puller(TraceCache(tmp_path / "other"), first_wait_s=0).pull(
            f"{hub.url}/plain/{archive.name}"
        )
    hub.cut_after = None
    hub.ranges.clear()
    pulled = Puller(TraceCache(tmp_path / "other")).pull(f"{hub.url}/plain/{archive.name}")
    assert hub.ranges == ["bytes=700-"]
    assert content(pulled.path) == content(ready.path)
    with pytest.raises(NotTrusted, match="not the one asked for"):
        Puller(cache).pull(f"{hub.url}/plain/{archive.name}#sha256={'0' * 64}")


def test_a_folder_of_this_machine(cache: TraceCache, ready: Trace, content: Any) -> None:
    assert content(Puller(cache).pull(str(ready.path)).path) == content(ready.path)
    with pytest.raises(TraceNotFound):
        Puller(cache).pull("nowhere")


def test_list_and_remove(hub: Any, cache: TraceCache, published: str, ready: Trace) -> None:
    Puller(cache).pull("hf:me/small")
    Puller(cache).pull(str(ready.path))
    assert len(cache.entries()) == 2
    assert [one.name for one in cache.remove("hf:me/small")] == ["small"]
    with pytest.raises(TraceNotFound, match="not in the cache"):
        cache.remove("hf:me/small")
    assert len(cache.clear()) == 1
    assert cache.entries() == []


def test_only_what_is_named_is_removed(
    hub: Any, cache: TraceCache, published: str, ready: Trace, content: Any, tmp_path: Path
) -> None:
    for name, data in content(ready.path).items():
        hub.plain[f"d/{name}"] = data
    odd = tmp_path / "ready#a@b"
    shutil.copytree(ready.path, odd)
    for address in ("hf:me/small", f"{hub.url}/plain/d/", str(odd)):
        Puller(cache).pull(address)
    with pytest.raises(BadAddress, match="empty address"):
        cache.remove("")
    for other in (str(tmp_path / "ready"), str(tmp_path / "ready#a"), hub.url):
        with pytest.raises(TraceNotFound):
            cache.remove(other)
    assert len(cache.entries()) == 3
    for address, pinned in (
        (str(odd), str(odd)),
        (f"{hub.url}/plain/d/", f"{hub.url}/plain/d/#sha256={ready.sha256}"),
        ("hf:me/small", f"hf:me/small@{published}"),
    ):
        assert [one.address for one in cache.remove(address)] == [pinned]
    assert cache.entries() == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hf:me/a", HubAddress("me/a", "main")),
        ("hf:me/a.b@refs/v1", HubAddress("me/a.b", "refs/v1")),
        ("https://h.org/a.tar", WebAddress("https://h.org/a.tar")),
        ("https://h.org/a?b=c#sha256=" + "a" * 64, WebAddress("https://h.org/a?b=c", "a" * 64)),
        ("some/where", Path("some/where")),
    ],
)
def test_addresses(text: str, address: object) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty address"),
        (" ", "an empty address"),
        ("hf:me", "no dataset of the Hub"),
        ("hf:../a", "no dataset of the Hub"),
        ("hf:me/..", "no dataset of the Hub"),
        ("hf:me/a@", "no revision"),
        ("hf:me/a@../b", "no revision"),
        ("http://h.org/a", "must begin with https"),
        ("ftp://h.org/a", "must begin with https"),
        ("https:///a", "has no host"),
        ("https://u:p@h.org/a", "password"),
        ("https://h.org/a#b", "after the # only sha256="),
    ],
)
def test_bad_addresses(text: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        parse_address(text)


def test_a_trace_is_on_disk_before_it_has_its_place(
    cache: TraceCache, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place alone says later that the trace is whole."""
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        done.append("sync " + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def renamed(source: Any, target: Any) -> None:
        done.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    trace = Trace.open(Puller(cache).pull(f"hf:me/small@{published}").path)
    names = {f"sync {Path(entry.path).name}" for entry in trace.manifest.files}
    assert names <= set(done[: done.index("rename")])
    assert done[done.index("rename") + 1] == f"sync {trace.path.parent.name}"
