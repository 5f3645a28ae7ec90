"""Texts of exact lengths, in words and in tokenizers of every kind."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from s2l.serving_adapter.embedded.model import prepare
from s2l.workloads.errors import TokenizerError
from s2l.workloads.synth.text import TokenizedTexts, WordTexts, one_token_words, text_maker
from s2l.workloads.synth.words import WORDS
from s2l.workloads.token_counter import WordCounter, token_counter

SMOLLM = Path.home() / ".cache/s2l/models/SmolLM2-135M-Instruct/tokenizer.json"
LENGTHS = (0, 1, 2, 7, 512, 3_001)


class Characters:
    """Every byte is a token."""

    name = "bytes"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]


class Pairs:
    """Two words are one token: fewer tokens than words."""

    name = "pairs"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [(len(text.split()) + 1) // 2 for text in texts]


class EvenOnly:
    """Knows no text of an odd number of tokens."""

    name = "even"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [2 * len(text) for text in texts]


def test_words() -> None:
    assert len(WORDS) == len(set(WORDS)) == 512
    texts = WordTexts(3)
    assert [len(texts.text("k", n).split()) for n in LENGTHS] == list(LENGTHS)
    assert texts.text("k", 9).startswith(texts.text("k", 5))
    assert texts.text("k", 9) != texts.text("other", 9)
    assert texts.text("k", 9) != WordTexts(4).text("k", 9)
    assert isinstance(text_maker(0, WordCounter()), WordTexts)


def test_the_same_on_every_machine() -> None:
    assert WordTexts(0).text("block 0", 6) == SIX_WORDS
    digest = sha256(WordTexts(0).text("block 0", 100_000).encode()).hexdigest()
    assert digest == LONG_SHA256


@pytest.mark.parametrize("counter", [Characters(), Pairs()], ids=lambda one: one.name)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_tokenizers_without_words(counter: Characters | Pairs, tokens: int) -> None:
    texts = TokenizedTexts(0, counter)
    text = texts.text("k", tokens)
    assert counter.count([text]) == [tokens]
    assert text == texts.text("k", tokens)


def test_a_length_that_no_text_has() -> None:
    assert len(TokenizedTexts(0, EvenOnly()).text("k", 8)) == 4
    with pytest.raises(TokenizerError, match="even: no text of exactly 7 tokens was found"):
        TokenizedTexts(0, EvenOnly()).text("k", 7)


def word_level(path: Path) -> Path:
    """A tokenizer.json that knows a few of the words and takes the others apart."""
    pieces = [*WORDS[:40], *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnop")]
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys(["[UNK]", *pieces]))}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": vocabulary}
    tokenizer = {"version": "1.0", "added_tokens": [], "truncation": None, "padding": None}
    tokenizer |= {"normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    tokenizer |= {"post_processor": None, "decoder": None}
    path.write_text(json.dumps(tokenizer))
    return path


def test_a_tokenizer_file(tmp_path: Path) -> None:
    counter = token_counter(word_level(tmp_path / "tokenizer.json"))
    assert counter.name.startswith(f"{tmp_path.name}@")
    assert set(WORDS[:40]) <= set(one_token_words(counter))
    texts = TokenizedTexts(0, counter)
    assert [counter.count([texts.text("k", n)])[0] for n in LENGTHS] == list(LENGTHS)


def test_the_packaged_models_tokenizer() -> None:
    prepare()
    counter = token_counter(SMOLLM.parent)
    assert one_token_words(counter) == list(WORDS)
    texts = text_maker(0, counter)
    assert [counter.count([texts.text("k", n)])[0] for n in LENGTHS] == list(LENGTHS)


@pytest.mark.parametrize(
    ("content", "error"), [(None, "No such file"), ("{}", "not a tokenizer.json")]
)
def test_no_tokenizer(content: str | None, error: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerError, match=error) as caught:
        token_counter(tmp_path)
    assert "\n" not in str(caught.value)


SIX_WORDS = "link sharp why event time game"
LONG_SHA256 = "6ed5b72294758b16e9d51b168a3452e61792507c4ef2a06e47b3b3c4279a6d73"
