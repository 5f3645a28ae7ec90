"""A static site as a Space of the Hub: what is there is read first, then one commit adds to it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from s2l.workloads.errors import one_line
from s2l.workloads.hub_library import commit_outcome, hub_failures, hub_library
from s2l.workloads.sharing.address import hub_endpoint, parse_address
from s2l.workloads.sharing.errors import BadAddress, TransferFailed

README: Final = "README.md"


@dataclass(frozen=True, slots=True)
class SpaceSite:
    """What a Space has before it is added to: its commit, its files, and one file's bytes."""

    commit: str
    names: frozenset[str]
    content: bytes | None


def space_address(repo: str) -> str:
    """Where a static Space is seen.

    Raises:
        BadAddress: it is no name of a repository.
    """
    try:
        parse_address(f"hf:{repo}")
    except BadAddress:
        raise BadAddress(f"{repo!r}: no name of a Space; write user/name") from None
    if "@" in repo:
        raise BadAddress(f"{repo!r}: no name of a Space; write user/name, without a revision")
    return f"https://{repo.replace('/', '-').replace('.', '-').lower()}.static.hf.space/"


def add_to_space(
    repo: str, keep: str, build: Callable[[Path, SpaceSite], None], *, private: bool = False
) -> str:
    """Build a site over what a Space has, and commit all that was built; nothing is removed there.

    Args:
        repo: ``user/name``; made where it is not there.
        keep: the file of the Space that is given to ``build``, where there is one.
        build: writes the files into the folder that it is given.
        private: of a new Space.

    Raises:
        TransferFailed: the Hub is not there, says no, or was changed by somebody else meanwhile.
    """
    library = hub_library()
    failures: tuple[type[Exception], ...] = (*hub_failures(), OSError, ValueError)
    api = library.HfApi(endpoint=hub_endpoint(), token=os.environ.get("HF_TOKEN"))
    with TemporaryDirectory(prefix="s2l-space-") as folder:
        try:
            before = _before(library, api, repo, keep, private=private)
        except failures as error:
            raise TransferFailed(f"{repo}: {one_line(error)}; no file was changed") from None
        site = Path(folder) / "site"
        site.mkdir()
        build(site, before)
        try:
            done = api.create_commit(
                repo,
                _operations(library, site, before.names),
                commit_message="Runs added",
                repo_type="space",
                revision="main",
                parent_commit=before.commit,
            )
        except failures as error:
            raise TransferFailed(f"{repo}: {one_line(error)}; {commit_outcome(error)}") from None
    return str(done.oid)


def _before(library: Any, api: Any, repo: str, keep: str, *, private: bool) -> SpaceSite:
    api.create_repo(repo, repo_type="space", space_sdk="static", private=private, exist_ok=True)
    info = api.space_info(repo)
    names = frozenset(one.rfilename for one in info.siblings or ())
    content = None
    if keep in names:
        with TemporaryDirectory(prefix="s2l-space-") as folder:
            file = api.hf_hub_download(
                repo, keep, repo_type="space", revision=info.sha, local_dir=folder
            )
            content = Path(file).read_bytes()
    return SpaceSite(str(info.sha), names, content)


def _operations(library: Any, site: Path, there: frozenset[str]) -> list[Any]:
    """Every file that was built; a card that is there stays its owner's."""
    files = sorted(file for file in site.rglob("*") if file.is_file())
    names = {file.relative_to(site).as_posix(): file for file in files}
    return [
        library.CommitOperationAdd(name, str(file))
        for name, file in names.items()
        if name != README or name not in there
    ]
