"""Models of the Hugging Face Hub: which commit a name stands for, asked quickly and once."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from s2l.workloads.hub_library import hub_failures, hub_library
from s2l.workloads.sharing.address import hub_endpoint

_NAME: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*(@\S+)?", re.ASCII)
_TIMEOUT_S: Final = 10.0


class NoSuchModel(Exception):
    """The Hub does not have it, or cannot be asked; one line."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model at one commit. ``cached_only``: the Hub could not be asked, and what this machine
    keeps of an earlier download is all there is."""

    name: str
    commit: str
    cached_only: bool = False


def is_hub_name(text: str) -> bool:
    """Whether it has the form OWNER/NAME or OWNER/NAME@REVISION."""
    return _NAME.fullmatch(text) is not None


def find_hub_model(text: str) -> HubModel:
    """What OWNER/NAME, or OWNER/NAME@REVISION (a branch, a tag, a commit), stands for now.

    The Hub is asked without retries. Where it cannot be reached, the commit that the name stood for
    at the last download is taken.

    Raises:
        HubMissing: the Hub's library is not installed.
        BadAddress: ``HF_ENDPOINT`` is no address.
        NoSuchModel: there is none, or it cannot be known.
    """
    name, _, revision = text.partition("@")
    hub, place = hub_library(), hub_endpoint()
    out_of_reach: tuple[type[Exception], ...] = (*hub_failures(), OSError)
    try:
        found = hub.HfApi(endpoint=place).model_info(
            name, revision=revision or None, timeout=_TIMEOUT_S
        )
    except hub.errors.HFValidationError as error:
        raise NoSuchModel(f"not the name of a model ({_words(error)})") from None
    except hub.errors.RevisionNotFoundError:
        raise NoSuchModel(f"{place} has {name}, but no revision {revision!r} of it") from None
    except hub.errors.RepositoryNotFoundError:
        raise NoSuchModel(f"{place} has none of that name (a private one needs HF_TOKEN)") from None
    except hub.errors.OfflineModeIsEnabled:
        return _cached(hub, name, revision, "HF_HUB_OFFLINE is set")
    except out_of_reach as error:
        return _cached(hub, name, revision, f"{place} cannot be asked ({_words(error)})")
    _note(hub, name, revision, str(found.sha))
    return HubModel(name, str(found.sha))


def _note(hub: Any, name: str, revision: str, commit: str) -> None:
    """Let the cache know what the name stands for, for when there is no network."""
    with suppress(hub.errors.RevisionResolutionError):
        if _known(hub, name, revision) == commit:
            return
    with suppress(hub.errors.RevisionResolutionError, *hub_failures()):
        hub.resolve_revision(name, revision=revision or None)


def _known(hub: Any, name: str, revision: str) -> str:
    found = hub.resolve_revision(name, revision=revision or None, local_files_only=True)
    return str(found.resolved)


def _cached(hub: Any, name: str, revision: str, why: str) -> HubModel:
    try:
        commit = _known(hub, name, revision)
        if commit == revision:  # a commit stands for itself, downloaded or not
            hub.snapshot_download(name, revision=commit, local_files_only=True)
    except (hub.errors.RevisionResolutionError, hub.errors.LocalEntryNotFoundError):
        raise NoSuchModel(f"{why}, and nothing of it was downloaded before") from None
    return HubModel(name, commit, cached_only=True)


def _words(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:120]
