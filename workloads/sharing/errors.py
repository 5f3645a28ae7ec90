"""What can go wrong when a trace is shared."""

from s2l.workloads.errors import NotATrace, TraceError


class BadAddress(TraceError):
    """Where a trace should come from or go to makes no sense."""


class TransferFailed(TraceError):
    """The other side did not give or take it; what was transferred is kept, try again."""


class NotTrusted(NotATrace):
    """A stranger's dataset or archive that is refused; nothing of it was used."""


class HubMissing(TraceError):
    """The package that writes to the Hub is not installed."""
