"""Looks models up on the Hugging Face Hub; the one place here that imports huggingface_hub."""


def model_config_reachable(name: str) -> bool:
    """Whether the hub, or this machine's copy of it, has a model of that name."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ModuleNotFoundError:
        return False
    try:
        hf_hub_download(name, "config.json")
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError):
        return False
    return True
