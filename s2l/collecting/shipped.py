"""What a capture takes where nothing is named: the questions that come with the project."""

from importlib.resources import files
from pathlib import Path
from typing import Final

LICENCE_DEMO: Final = "PSF-2.0"
"""Of Python's documentation, which the demo site serves."""


def shipped_questions() -> Path:
    """The 40 questions about Python's standard library."""
    return Path(str(files("s2l.datasets").joinpath("pydocs/queries.jsonl")))
