from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.embedding_cache import EmbeddingCache
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.vectors import Matrix, unit_vectors
from s2l.workloads.document import Document

Documents = Callable[[Sequence[str]], list[Document]]


class Counting:
    """Embeds a text by its length, and remembers what it was asked for."""

    dimension = 2

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


class Broken(Counting):
    def __init__(self, vectors: list[list[float]]) -> None:
        super().__init__()
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.array(self._vectors, np.float32)


def test_vectors_get_unit_length_in_place() -> None:
    given = np.array([[3, 4], [0, -2], [1e30, 0]], np.float32)
    found = unit_vectors(given, ["a", "b", "c"])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, -1], [1, 0]], rtol=1e-6)
    assert found is given


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, 0], [np.nan, 0]], r"'b' is not finite \(1 such\)"),
        ([[1, 0], [np.inf, 0]], r"'b' is not finite"),
        ([[0, 0], [0, 0]], r"'a' is zero \(2 such\)"),
        ([[1, 0]], r"shape \(1, 2\) for 2 texts"),
        ([[1, 0, 0], [0, 1, 0]], "'a' has 3 dimensions, not 2"),
        ([1, 2], r"shape \(2,\) for 2 texts"),
    ],
)
def test_bad_vectors_are_named(bad: list[list[float]], message: str) -> None:
    with pytest.raises(AnnError, match=message):
        unit_vectors(np.array(bad, np.float32), ["a", "b"], 2)


def test_only_what_is_new_is_embedded(tmp_path: Path, passages_of: Documents) -> None:
    first, progress = Counting(), list[tuple[int, int]]()
    passages = passages_of(["a", "bb", "a"])
    found = EmbeddingCache(tmp_path, first).embed(passages, lambda *n: progress.append(n))
    assert (first.asked, progress) == (["a", "bb"], [(2, 2)])
    second = Counting()
    again = EmbeddingCache(tmp_path, second).embed(passages_of(["ccc", "a", "bb"]))
    assert second.asked == ["ccc"]
    np.testing.assert_array_equal(again[1:], found[:2])
    assert again.dtype == np.float32
    other = Counting("other")
    EmbeddingCache(tmp_path, other).embed(passages)
    assert other.asked == ["a", "bb"]


def test_an_interrupted_run_keeps_what_it_had(
    tmp_path: Path, passages_of: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s2l.collectors.ann.embedding_cache._AT_A_TIME", 2)

    def interrupt(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    passages = passages_of(["a", "bb", "ccc", "dddd", "e5"])
    with pytest.raises(KeyboardInterrupt):
        EmbeddingCache(tmp_path, Counting()).embed(passages, interrupt)
    rest = Counting()
    EmbeddingCache(tmp_path, rest).embed(passages)
    assert rest.asked == ["e5"]


def test_bad_vectors_are_not_kept(tmp_path: Path, passages_of: Documents) -> None:
    passages = passages_of(["a"])
    for vector, message in (([np.nan, 1], "not finite"), ([0, 0], "zero"), ([1, 2, 3], "3 dim")):
        with pytest.raises(AnnError, match=message):
            EmbeddingCache(tmp_path, Broken([vector])).embed(passages)
    assert not list(tmp_path.rglob("*.npz"))


def test_a_damaged_file_is_named(tmp_path: Path, passages_of: Documents) -> None:
    EmbeddingCache(tmp_path, Counting()).embed(passages_of(["a"]))
    [file] = tmp_path.rglob("*.npz")
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(AnnError, match=rf"{file.name}: damaged .* delete it"):
        EmbeddingCache(tmp_path, Counting()).embed(passages_of(["a"]))


def test_the_packaged_model(packaged: SentenceEmbedder) -> None:
    assert packaged.dimension == 384
    assert packaged.name == "all-MiniLM-L6-v2@fbc594255beb"
    cat, kitten, tax = packaged.embed(["a cat", "a small kitten", "income tax law"])
    assert cat @ kitten > 0.5 > cat @ tax
    assert len(packaged.tokenizer().encode("word " * 600, add_special_tokens=False)) == 600


def test_prompts_of_a_model_are_used(
    packaged: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, model = ["which animal purrs"], packaged._model
    plain = packaged.embed(text)
    np.testing.assert_array_equal(packaged.embed_questions(text), plain)
    asked, read = packaged.embed(["query: which animal purrs", "text: which animal purrs"])
    monkeypatch.setitem(model.prompts, "query", "query: ")
    monkeypatch.setitem(model.prompts, "document", "text: ")
    np.testing.assert_allclose(packaged.embed_questions(text)[0], asked, atol=1e-6)
    np.testing.assert_allclose(packaged.embed(text)[0], read, atol=1e-6)


def test_how_much_of_a_text_is_seen(packaged: SentenceEmbedder) -> None:
    assert packaged.seen_tokens == 254
    texts = ["word " * 254, "word " * 254 + "other " * 9, "word " * 253 + "other"]
    whole, cut, changed = packaged.embed(texts)
    np.testing.assert_allclose(whole, cut, atol=1e-6)
    assert np.abs(whole - changed).max() > 1e-4


def test_a_model_that_is_not_there(tmp_path: Path, packaged: SentenceEmbedder) -> None:
    with pytest.raises(AnnError, match="cannot be loaded as an embedding model") as error:
        SentenceEmbedder.open(str(tmp_path))
    assert "\n" not in str(error.value)
