"""The Hugging Face Hub's own library; the one place that imports it."""

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
    except ModuleNotFoundError:
        raise HubMissing(
            "huggingface_hub is not installed; writing to the Hub needs: pip install 's2l[hub]'"
        ) from None
    return huggingface_hub


def hub_failures() -> tuple[type[Exception], ...]:
    """What the library raises when the Hub is not there, says no, or dislikes a name."""
    library = hub_library()
    import httpx  # what the library speaks through, so it is there

    return (library.errors.HfHubHTTPError, library.errors.HFValidationError, httpx.HTTPError)
