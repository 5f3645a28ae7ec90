"""Models by their names on the Hub, from a local server that answers as it does."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.model_source import (
    PACKAGED,
    ModelSource,
    find_model,
    name_and_commit,
    pinned,
)
from s2l.collectors.ann.rerank import CrossEncoderScorer
from s2l.workloads.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2]))
from fake_hub import running_hub

S2L = str(Path(sys.executable).with_name("s2l"))
EMBEDDER, RERANKER = "someone/mini-embedder", "someone/tiny-reranker"


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cross-encoder that knows letters only, and nothing of the world."""
    folder = tmp_path_factory.mktemp("models") / "tiny-reranker"
    folder.mkdir()
    transformers: Any = import_module("transformers")
    letters = "abcdefghijklmnopqrstuvwxyz"
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def content_of(folder: str | Path) -> dict[str, bytes]:
    files = [file for file in Path(folder).rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


Collect = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """``s2l collect ann`` in a folder of its own, with an empty cache of the Hub's."""
    texts = ("The cat purrs when it is content.", "A dog wags its tail.", "Whales sing at sea.")
    rows = [{"doc_id": f"a{i}", "text": text} for i, text in enumerate(texts)]
    (tmp_path / "animals.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "q.jsonl").write_text('{"query": "Which animal purrs?"}\n')

    def run(endpoint: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [S2L, "collect", "ann", "animals.jsonl", "--queries", "q.jsonl"]
        own = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf")}
        own |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        return subprocess.run(
            [*command, "--cache", "cache", "-k", "1", "--rerank-depth", "3", *arguments],
            cwd=tmp_path,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_models_of_the_hub_and_then_without_it(
    collect: Collect, reranker: Path, tmp_path: Path, unused_tcp_port: int
) -> None:
    models = ("--rerank", RERANKER, "--model", f"{EMBEDDER}@v1")
    with running_hub() as hub:
        commit = hub.commit(EMBEDDER, "v1", content_of(find_model(PACKAGED).place))
        hub.commit(EMBEDDER, "main", {"config.json": b"{}"})
        hub.commit(RERANKER, "main", content_of(reranker))
        online = collect(hub.url, *models, "--out", "online")
        assert online.returncode == 0, online.stderr
        asked = {path.split("/")[1] for path in hub.requests}
        unknown = collect(hub.url, "--rerank", "someone/nothing")
    offline = collect(f"http://127.0.0.1:{unused_tcp_port}", *models, "--out", "offline")
    assert offline.returncode == 0, offline.stderr

    assert asked == {"api", "someone", "store"}
    one, two = (Trace.open(tmp_path / name) for name in ("online", "offline"))
    options = one.manifest.collector.options
    assert options["embedder"] == f"{EMBEDDER}@fbc594255beb"
    assert options["embedder_commit"] == commit
    assert options["reranker"] == RERANKER
    assert options["reranker_commit"] == hub.heads[RERANKER, "main"]
    assert two.manifest.collector.options == options
    stages = [[a.meta.get("stage") for a in r.arrivals] for t in (one, two) for r in t.retrievals()]
    assert stages[0] == stages[1]
    assert unknown.returncode == 2
    assert unknown.stderr.splitlines() == [
        f"s2l: someone/nothing: no such folder; as a model of the Hub: {hub.url} has none of that "
        "name (a private one needs HF_TOKEN)"
    ]


def test_folders_are_loaded_without_a_network(
    reranker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network was looked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    scorer = CrossEncoderScorer.open(str(reranker))
    assert scorer.name == "tiny-reranker"
    assert scorer.scores("which", ["one", "another"]).shape == (2,)
    folder = find_model(PACKAGED).place
    assert SentenceEmbedder.open(folder).name == "model@fbc594255beb"
    assert pinned(folder) == folder
    assert pinned(PACKAGED) == PACKAGED


def test_models_that_score_no_pairs(reranker: Path, tmp_path: Path) -> None:
    with pytest.raises(AnnError, match="is no cross-encoder but a BertModel, which scores no"):
        CrossEncoderScorer.open(find_model(PACKAGED).place)
    transformers: Any = import_module("transformers")
    two = shutil.copytree(reranker, tmp_path / "two")
    config = transformers.BertConfig.from_pretrained(two, num_labels=2)
    transformers.BertForSequenceClassification(config).save_pretrained(two)
    with pytest.raises(AnnError, match="two: its scores are not one finite number"):
        CrossEncoderScorer.open(str(two))


def test_a_name_is_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with running_hub() as hub:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", hub.url)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        commit = hub.commit(EMBEDDER, "main", {})
        assert find_model(EMBEDDER) == ModelSource(EMBEDDER, EMBEDDER, commit, here=False)
        assert pinned(EMBEDDER) == f"{EMBEDDER}@{commit}"
    assert name_and_commit(f"{EMBEDDER}@{commit}") == (EMBEDDER, commit)
    assert name_and_commit(PACKAGED) == (PACKAGED, None)


def test_names_of_nothing(tmp_path: Path) -> None:
    for name in ("all-mpnet-base-v2", "./models/mine", "a/b/c", str(tmp_path / "none")):
        with pytest.raises(AnnError, match=r"no such folder; name one, or a model .* OWNER/NAME"):
            find_model(name)
