"""Exit codes, and which failures of the parts they stand for."""

from typing import Final

FAILED: Final = 1
USAGE: Final = 2
NOT_VALID: Final = 3
INTERRUPTED: Final = 130

_CODES: Final = {
    # What was given is wrong: it was found before anything started.
    "s2l.workloads.errors.TraceError": USAGE,
    "s2l.workloads.errors.BadQuestions": USAGE,
    "s2l.replayer.plan.PlanError": USAGE,
    "s2l.replayer.run.RunError": USAGE,
    "s2l.serving_adapter.embedded.model.ModelError": USAGE,
    "s2l.collectors.searching.base.SearchError": USAGE,
    "s2l.collectors.ann.errors.AnnError": USAGE,
    "s2l.replayer.scale_out.ray_crew.RayMissing": USAGE,
    # The world did not go along.
    "s2l.replayer.scale_out.crew.WorkerLost": FAILED,
    "s2l.workloads.sharing.errors.TransferFailed": FAILED,
    "s2l.collectors.ann.errors.SearchFailed": FAILED,
    "s2l.workloads.errors.DiskError": FAILED,
    "s2l.replayer.run_writer.RunNotWritten": FAILED,
    "s2l.serving_adapter.base.ServingError": FAILED,
    "s2l.serving_adapter.embedded.server.EngineError": FAILED,
    "s2l.collectors.demo_site.process.DemoSiteError": FAILED,
    "s2l.collectors.extraction.extractor.ExtractorError": FAILED,
    "s2l.collectors.browser.chromium.BrowserUnavailable": FAILED,
}
"""By full name, so that no module is imported only to know its errors."""

_NO_SUCH_PLACE: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""What the system says when a path that was given cannot be what it is to be."""


def exit_code_of(error: Exception) -> int | None:
    """The exit code for an error of ours; None for one that is a bug."""
    for kind in type(error).__mro__:
        if (code := _CODES.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return code
    if isinstance(error, _NO_SUCH_PLACE) and error.filename is not None:
        return USAGE
    return FAILED if isinstance(error, OSError) else None


def message_of(error: Exception) -> str:
    """What to say of it: ``PATH: reason`` for what the system says of a file."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def known_errors() -> list[str]:
    """The full names, for the test that they exist."""
    return list(_CODES)
