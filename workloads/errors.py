"""What can be wrong with a trace; each message says what is wrong and what would be right."""

from pathlib import Path


class TraceError(Exception):
    """A trace that cannot be read or written. Its text is one line for the person who gave it."""


class TraceNotFound(TraceError):
    """Nothing is at the path."""


class NotATrace(TraceError):
    """The path holds something else than a trace dataset, or a damaged one."""


class UnsupportedFormat(TraceError):
    """The dataset was written in another major version of the format."""


class UnfinishedTrace(TraceError):
    """The capture was interrupted: there is a write-ahead log and no manifest."""


class DiskError(TraceError):
    """The system would not read or write a file: no room, no permission."""


class ImportFailed(TraceError):
    """Files of another format that cannot be imported; names file and line."""


class ExportFailed(TraceError):
    """A trace that the chosen format cannot carry."""


class TokenizerError(TraceError):
    """A tokenizer that cannot be used."""


class BadQuestions(ValueError):
    """A file of questions that cannot be read. Its text is one line that names file and line."""


def one_line(error: BaseException) -> str:
    """An error's text on one line: Arrow's own run over several."""
    return " ".join(str(error).split())


def disk_error(path: Path, error: OSError, advice: str = "") -> DiskError:
    """The error for a path that the system would not read or write."""
    return DiskError(f"{path}: {error.strerror or one_line(error)}{advice}")
