"""What can be wrong with a trace; each message says what is wrong and what would be right."""


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
