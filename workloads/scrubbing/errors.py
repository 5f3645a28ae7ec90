"""What can be wrong when a trace is made fit to be shared."""

from s2l.workloads.errors import TraceError


class BadTakedown(TraceError):
    """A list of what is to be taken down that cannot be followed."""


class ScrubberMissing(TraceError):
    """A package that finds secrets is not installed."""
