"""Importing, exporting and comparing traces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.formats.base import ExportOptions, ImportOptions
from s2l.workloads.formats.exporting import export_trace
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.synth.text import TextMaker, WordTexts
from s2l.workloads.token_counter import WordCounter
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate

REAL = Path(__file__).parents[4] / "shared" / "data" / "traces"


class ShortTexts:
    """Says what was to be made and how long, and makes only that sentence."""

    name = "short"

    def text(self, key: str, tokens: int) -> str:
        """The key and the length."""
        return f"{key} of {tokens}"


class Bench:
    """Imports and exports in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def new(self, name: str = "") -> Path:
        """A path where nothing is yet."""
        self._made += 1
        return self._folder / f"{self._made}{name}"

    def read(
        self,
        fmt: str,
        source: Path,
        options: ImportOptions | None = None,
        log: ImportLog | None = None,
        texts: TextMaker | None = None,
        *,
        check: bool = True,
    ) -> Trace:
        """The trace that the import wrote; ``check`` that it is valid."""
        out = self.new()
        provenance = Provenance("t", "0", "MIT", 0)
        texts = texts or WordTexts(0)
        import_trace(source, FORMATS[fmt], out, texts, provenance, options or ImportOptions(), log)
        assert not check or validate(out) == []
        return Trace.open(out)

    def write(self, fmt: str, trace: Trace, name: str = "", **options: Any) -> Path:
        """Where the export went."""
        out = self.new(name)
        export_trace(trace, FORMATS[fmt], out, ExportOptions(WordCounter(), **options))
        return out


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Imports and exports, with validation."""
    return Bench(tmp_path)


@pytest.fixture
def same() -> Callable[[Trace, Trace], None]:
    """Asserts that two traces hold the same records."""

    def check(one: Trace, other: Trace) -> None:
        assert list(one.queries()) == list(other.queries())
        assert list(one.arrivals()) == list(other.arrivals())
        assert sorted(one.documents(), key=lambda d: d.doc_id) == sorted(
            other.documents(), key=lambda d: d.doc_id
        )

    return check


@pytest.fixture
def short_texts() -> ShortTexts:
    """Texts that cost nothing, where their lengths are not what is tested."""
    return ShortTexts()


@pytest.fixture
def real() -> Callable[[str], Path]:
    """A file of a public trace; skips the test where it is absent."""

    def find(name: str) -> Path:
        path = REAL / name
        if not path.exists():
            pytest.skip(f"the public trace {name} is absent: {path} does not exist")
        return path

    return find
