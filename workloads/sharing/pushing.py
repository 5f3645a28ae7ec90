"""Publishing a packaged trace, so that nobody ever sees half of it."""

import asyncio
import os
import shutil
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from s2l.workloads.durable import sync_folder, sync_tree
from s2l.workloads.errors import TraceError, disk_error, one_line
from s2l.workloads.hub_library import commit_outcome, hub_failures, hub_library
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.sharing.address import Address, HubAddress, WebAddress, hub_endpoint
from s2l.workloads.sharing.archive import write_archive
from s2l.workloads.sharing.errors import BadAddress, NotTrusted, TransferFailed
from s2l.workloads.sharing.limits import Limits
from s2l.workloads.sharing.pulling import copy_listed
from s2l.workloads.sharing.stranger_checks import check_stranger
from s2l.workloads.trace import Trace

PUSH_TOKEN: Final = "S2L_PUSH_TOKEN"
"""Environment variable with the bearer token of a web server that is pushed to."""

_CHUNK: Final = 1 << 20


def push(trace: Trace, address: Address, *, private: bool = False) -> str:
    """Publish a packaged trace; the address that gives exactly this one.

    Raises:
        BadAddress: a web address that is no archive.
        TransferFailed, TraceError: it did not work; no file is there by half. A repository or
            branch that was made for it stays.
    """
    if isinstance(address, HubAddress):
        return push_to_hub(trace, address, private=private)
    if isinstance(address, WebAddress):
        return push_to_web(trace, address)
    return push_to_folder(trace, address)


def push_to_folder(trace: Trace, folder: Path) -> str:
    """Copy aside, check, and rename: the folder is there as a whole or not at all.

    What an interrupted push leaves is hidden beside it, and goes with the next one.

    Raises:
        TraceError: something else is there, or a damaged copy, or it cannot be written.
    """
    if folder.exists():
        _check_same(folder, trace)
        return str(folder)
    aside = folder.with_name(f".{folder.name}.{trace.sha256[:12]}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        copy_listed(trace.path, aside, trace.manifest)
        check_stranger(aside, Limits())
        sync_tree(aside)
        os.rename(aside, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise disk_error(folder, error) from None
    return str(folder)


def push_to_hub(trace: Trace, address: HubAddress, *, private: bool = False) -> str:
    """One commit with all files: contents go up first, and are nowhere to be seen until then.

    Raises:
        BadAddress: a commit, which cannot be pushed to.
        TransferFailed: the Hub is not there, says no, or was changed by somebody else meanwhile.
    """
    if address.is_pinned:
        raise BadAddress(f"{address}: a commit cannot be pushed to; name a branch, or none")
    library = hub_library()
    failures: tuple[type[Exception], ...] = (*hub_failures(), OSError, ValueError)
    api = library.HfApi(endpoint=hub_endpoint(), token=os.environ.get("HF_TOKEN"))
    try:
        api.create_repo(address.repo, repo_type="dataset", private=private, exist_ok=True)
        if address.revision != "main":
            api.create_branch(
                address.repo, branch=address.revision, repo_type="dataset", exist_ok=True
            )
        info = api.dataset_info(address.repo, revision=address.revision)
    except failures as error:
        raise TransferFailed(f"{address}: {one_line(error)}; no file was changed") from None
    try:
        done = api.create_commit(
            address.repo,
            _operations(library, trace, [one.rfilename for one in info.siblings or ()]),
            commit_message=f"Trace {trace.manifest.name}",
            repo_type="dataset",
            revision=address.revision,
            parent_commit=info.sha,
        )
    except failures as error:
        raise TransferFailed(f"{address}: {one_line(error)}; {commit_outcome(error)}") from None
    return str(HubAddress(address.repo, str(done.oid)))


def _operations(library: Any, trace: Trace, there: list[str]) -> list[Any]:
    """Every file of the dataset, and the removal of every other one that is there."""
    names = [*(entry.path for entry in trace.manifest.files), MANIFEST]
    adds = [library.CommitOperationAdd(name, str(trace.path / name)) for name in names]
    gone = sorted(set(there) - {*names, ".gitattributes"})
    return adds + [library.CommitOperationDelete(name) for name in gone]


def push_to_web(trace: Trace, address: WebAddress) -> str:
    """One request with a whole archive, which servers put in place when all of it is there."""
    if not address.is_archive:
        raise BadAddress(f"{address.url}: on the web one archive is pushed; name it ….tar")
    with TemporaryDirectory(prefix="s2l-push-") as folder:
        archive = Path(folder) / Path(urlsplit(address.url).path).name
        write_archive(trace.path, trace.manifest, archive)
        with archive.open("rb") as opened:
            digest = file_digest(opened, "sha256").hexdigest()
        asyncio.run(_put(address.url, archive, digest))
    return str(WebAddress(address.url, digest))


async def _put(url: str, archive: Path, digest: str) -> None:
    headers = {"Content-Type": "application/x-tar", "X-Content-SHA256": digest}
    if token := os.environ.get(PUSH_TOKEN):
        headers["Authorization"] = f"Bearer {token}"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=300)
    try:
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            with archive.open("rb") as body:
                headers["Content-Length"] = str(archive.stat().st_size)
                async with session.put(
                    url, data=body, headers=headers, allow_redirects=False
                ) as answer:
                    if answer.status not in (200, 201, 204):
                        raise TransferFailed(f"{url}: answered {answer.status} to a PUT")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise TransferFailed(f"{url}: {one_line(error) or type(error).__name__}") from None


def _check_same(folder: Path, trace: Trace) -> None:
    file = folder / MANIFEST
    if not file.is_file() or sha256(file.read_bytes()).hexdigest() != trace.sha256:
        raise TraceError(f"{folder}: is there already, with other content; name a new folder")
    try:
        check_stranger(folder, Limits())
    except NotTrusted as error:
        raise TraceError(f"{error}; remove {folder}, which is no whole copy, and push") from None
