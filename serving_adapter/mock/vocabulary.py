"""The mock's tokenizer, where a token is a word, and its chat template."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_PIECE = re.compile(r"\s*\S+|\s+$")
_DIGEST_DIGITS: Final = 12
_DIGESTS_FROM: Final = 1 << 48
_DIGESTS_END: Final = _DIGESTS_FROM + 16**_DIGEST_DIGITS
"""Ids from here on are the digests that answers begin with: no memory is needed for these."""


def count_tokens(text: str) -> int:
    """As many as ``Vocabulary.encode`` gives, without looking them up."""
    return len(text.split()) + (1 if text[-1:].isspace() else 0)


def render_turns(turns: Iterable[tuple[str, str]]) -> str:
    """The prompt of a chat, given as roles and contents."""
    return "".join(f"<{role}> {content}\n" for role, content in turns) + "<assistant>"


class Vocabulary:
    """Words and their ids, numbered as they are met: a tokenizer that needs no model."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []

    def encode(self, text: str) -> list[int]:
        """Ids of the words, white space with the word after it."""
        return [self._id(word) for word in _PIECE.findall(text)]

    def decode(self, token_ids: Sequence[int]) -> str:
        """The words of known ids, joined. Raises IndexError for an id that was never given."""
        return "".join(map(self._word, token_ids))

    def digest_id(self, digest: str) -> int:
        """The id of an answer's first word, 12 hexadecimal digits."""
        return _DIGESTS_FROM + int(digest, 16)

    def _word(self, token_id: int) -> str:
        if _DIGESTS_FROM <= token_id < _DIGESTS_END:
            return f"{token_id - _DIGESTS_FROM:0{_DIGEST_DIGITS}x}"
        if not 0 <= token_id < len(self._words):
            raise IndexError(token_id)
        return self._words[token_id]

    def _id(self, word: str) -> int:
        found = self._ids.get(word)
        if found is None:
            found = self._ids[word] = len(self._words)
            self._words.append(word)
        return found
