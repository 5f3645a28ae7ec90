"""Looks models up on the Hugging Face Hub."""

from s2l.workloads.errors import one_line
from s2l.workloads.hub_library import hub_failures, hub_library
from s2l.workloads.hub_model import NoSuchModel, find_hub_model
from s2l.workloads.sharing.errors import BadAddress, HubMissing


def why_not_to_be_had(name: str) -> str | None:
    """Why neither the Hub nor this machine's copy of it gives a model; None where one does."""
    try:
        found, hub = find_hub_model(name), hub_library()
    except (NoSuchModel, HubMissing, BadAddress) as error:
        return str(error)
    failures: tuple[type[Exception], ...] = (*hub_failures(), OSError)
    try:
        hub.hf_hub_download(
            name, "config.json", revision=found.commit, local_files_only=found.cached_only
        )
    except hub.errors.RemoteEntryNotFoundError:
        return "it has no config.json"
    except failures as error:
        return one_line(error)[:200]
    return None
