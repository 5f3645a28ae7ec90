"""A tokenizer out of a ``tokenizer.json``; the one module that needs the tokenizers package."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from s2l.workloads.errors import TokenizerError, one_line

INSTALL = "pip install tokenizers"


class TokenizerFile:
    """Counts tokens as the models do that come with this file."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name = name
        self._tokenizer = tokenizer

    @classmethod
    def open(cls, path: Path) -> "TokenizerFile":
        """Read a ``tokenizer.json``, or the one in a model's folder.

        Raises:
            TokenizerError: there is none, it is damaged, or the package is missing.
        """
        file = path / "tokenizer.json" if path.is_dir() else path
        try:
            from tokenizers import Tokenizer
        except ImportError:
            text = f"{file}: the tokenizers package is not installed; install it with: {INSTALL}"
            raise TokenizerError(text) from None
        try:
            data = file.read_bytes()
            tokenizer = Tokenizer.from_buffer(data)
        except OSError as error:
            text = f"{file}: {error.strerror}; name a tokenizer.json or a model's folder"
            raise TokenizerError(text) from None
        except Exception as error:  # the package raises nothing narrower
            text = f"{file}: not a tokenizer.json: {one_line(error)}"
            raise TokenizerError(text) from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(f"{file.parent.name or file.name}@{sha256(data).hexdigest()[:12]}", tokenizer)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those that a model's input begins or ends with."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(one) for one in found]
