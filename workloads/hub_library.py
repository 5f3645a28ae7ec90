"""The Hugging Face Hub's own library; the one place that imports it."""

import sys
from typing import Any

from s2l.workloads.sharing.errors import HubMissing


def hub_library() -> Any:
    """``huggingface_hub``, imported when it is first needed.

    Raises:
        HubMissing: it is not installed.
    """
    try:
        import huggingface_hub
        import huggingface_hub.errors
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
    except ModuleNotFoundError:
        raise HubMissing(
            "huggingface_hub is not installed; writing to the Hub needs: pip install 's2l[hub]'"
        ) from None
    if not sys.stderr.isatty():
        disable_progress_bars()
    return huggingface_hub


def hub_failures() -> tuple[type[Exception], ...]:
    """What the library raises when the Hub is not there, says no, or dislikes a name."""
    errors = hub_library().errors
    # Its HTTP client differs between versions; its own error descends from that client's.
    base = next(kind for kind in errors.HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError")
    return (errors.HfHubHTTPError, errors.HFValidationError, base)


def commit_outcome(error: Exception) -> str:
    """What a failed commit has changed: nothing where the Hub said no; where its answer was lost,
    that is not known."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None and 400 <= status < 500:
        return "no file was changed"
    return "the whole commit may be there or nothing of it, never a part; look, or try again"
