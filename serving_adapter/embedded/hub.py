"""Looks models up on the Hugging Face Hub."""

from s2l.workloads.hub_library import hub_failures, hub_library
from s2l.workloads.sharing.errors import HubMissing


def model_config_reachable(name: str) -> bool:
    """Whether the hub, or this machine's copy of it, has a model of that name."""
    try:
        hub = hub_library()
    except HubMissing:
        return False
    failures: tuple[type[Exception], ...] = (*hub_failures(), OSError)
    try:
        hub.hf_hub_download(name, "config.json")
    except failures:
        return False
    return True
