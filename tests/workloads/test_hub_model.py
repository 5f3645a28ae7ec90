"""What a model's name stands for, asked of a local server that answers as the Hub does."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from s2l.workloads.hub_model import HubModel, NoSuchModel, find_hub_model, is_hub_name

sys.path.insert(0, str(Path(__file__).parents[1]))
from fake_hub import FakeHub, running_hub

NAME = "someone/model"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A hub with one model, and an empty cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with running_hub() as fake:
        monkeypatch.setenv("HF_ENDPOINT", fake.url)
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", fake.url)
        fake.commit(NAME, "v1", {"config.json": b"{}"})
        fake.commit(NAME, "main", {"config.json": b"{} "})
        yield fake


def test_names() -> None:
    names = [NAME, f"{NAME}@v1", f"{NAME}@refs/pr/1"]
    assert all(is_hub_name(name) for name in names)
    others = ["model", "a/b/c", "../model", "/a/b", "a/b@", "a b/c", "", "../b/c", "a/b@v 1"]
    assert not any(is_hub_name(name) for name in others)


def test_a_name_stands_for_a_commit(hub: FakeHub) -> None:
    main, v1 = hub.heads[NAME, "main"], hub.heads[NAME, "v1"]
    assert find_hub_model(NAME) == HubModel(NAME, main)
    assert find_hub_model(f"{NAME}@v1") == HubModel(NAME, v1)
    assert find_hub_model(f"{NAME}@{v1}") == HubModel(NAME, v1)


def test_names_that_stand_for_nothing_are_refused_at_once(hub: FakeHub) -> None:
    with pytest.raises(NoSuchModel, match=f"{hub.url} has none of that name"):
        find_hub_model("someone/nothing")
    with pytest.raises(NoSuchModel, match=f"{hub.url} has {NAME}, but no revision 'v9' of it"):
        find_hub_model(f"{NAME}@v9")
    with pytest.raises(NoSuchModel, match="not the name of a model"):
        find_hub_model("some..one/model--")
    assert len(hub.requests) == 2


def test_a_hub_out_of_reach(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    main = hub.heads[NAME, "main"]
    find_hub_model(NAME)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused_tcp_port}")
    assert find_hub_model(NAME) == HubModel(NAME, main, cached_only=True)
    message = f"{unused_tcp_port} cannot be asked .*, and nothing of it was downloaded before"
    with pytest.raises(NoSuchModel, match=message):
        find_hub_model(f"{NAME}@v1")
    with pytest.raises(NoSuchModel, match=message):
        find_hub_model(f"{NAME}@{main}")


def test_offline_mode(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(NoSuchModel, match="HF_HUB_OFFLINE is set, and nothing of it"):
        find_hub_model(NAME)
