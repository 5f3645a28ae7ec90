import importlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.passages import PassageSettings, split_into_passages
from s2l.workloads.document import Document

Documents = Callable[[Sequence[str]], list[Document]]


@pytest.fixture(scope="module")
def words() -> Any:
    """A tokenizer whose tokens are words."""
    tokenizers = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return tokenizer


def test_lengths_overlap_and_places(words: Any, passages_of: Documents) -> None:
    text = " ".join(f"w{i}" for i in range(25))
    [document] = passages_of([text])
    found = split_into_passages([document], words, PassageSettings(10, 4))
    assert [p.text.split() for p in found if p.text] == [
        [f"w{i}" for i in range(start, min(start + 10, 25))] for start in (0, 6, 12, 18)
    ]
    assert [p.doc_id for p in found] == [f"{document.doc_id}#{i}" for i in range(4)]
    for passage in found:
        start = passage.meta["start_char"]
        assert text[start : start + passage.n_chars] == passage.text
        assert (passage.meta["document"], passage.url) == (document.doc_id, "u0")


def test_short_texts_stay_whole(words: Any, passages_of: Documents) -> None:
    found = split_into_passages(passages_of(["é one", "two"]), words, PassageSettings())
    assert [p.text for p in found] == ["é one", "two"]
    assert found[0].text_sha256 == passages_of(["é one"])[0].text_sha256


def test_nothing_to_search(words: Any, passages_of: Documents) -> None:
    for documents in ([], passages_of(["", "  \n"])):
        with pytest.raises(AnnError, match="the corpus is empty"):
            split_into_passages(documents, words, PassageSettings())


def test_ids_that_would_collide(words: Any, passages_of: Documents) -> None:
    twice = passages_of(["one"]) * 2
    with pytest.raises(AnnError, match="two passages would have the id"):
        split_into_passages(twice, words, PassageSettings())


@pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_settings_that_cannot_be(tokens: int, overlap: int) -> None:
    with pytest.raises(AnnError, match="give"):
        PassageSettings(tokens, overlap)
