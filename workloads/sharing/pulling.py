"""Fetching a trace from the Hub, the web or a folder into the cache: whole and checked, or not."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from s2l.workloads.durable import write_durably
from s2l.workloads.errors import TraceNotFound, disk_error
from s2l.workloads.manifest import MANIFEST, FileEntry, Manifest
from s2l.workloads.sharing.address import HubAddress, WebAddress, hub_endpoint, parse_address
from s2l.workloads.sharing.cache import TraceCache, cached
from s2l.workloads.sharing.downloader import Downloader
from s2l.workloads.sharing.errors import NotTrusted, TransferFailed
from s2l.workloads.sharing.inspector import Inspector
from s2l.workloads.sharing.limits import Limits
from s2l.workloads.sharing.stranger_checks import checked_manifest, decode_checked

_AT_ONCE: Final = 4
_ANSWER_BYTES: Final = 64 << 20
_TRACE: Final = "trace"
_ARCHIVE: Final = "archive"

Tell = Callable[[int, int], None]
"""Told the bytes that are here, and all that will be."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """``address`` is pinned: it always gives this trace and no other."""

    path: Path
    address: str


@dataclass(frozen=True, slots=True)
class Puller:
    """Where pulled traces go, how much is taken, and the wait before a second attempt."""

    cache: TraceCache = field(default_factory=TraceCache)
    limits: Limits = field(default_factory=Limits)
    tell: Tell = lambda done, total: None
    first_wait_s: float = 0.5

    def pull(self, text: str) -> Pulled:
        """The trace at an address, out of the cache where it is there.

        Raises:
            BadAddress: no such kind of address.
            TransferFailed: it cannot be had now; what is here is kept for the next time.
            NotTrusted: it is not what it says, or no sound dataset; nothing of it is kept.
        """
        address = parse_address(text)
        if isinstance(address, HubAddress):
            return asyncio.run(self._from_hub(address))
        if isinstance(address, WebAddress):
            return asyncio.run(self._from_web(address))
        if address.is_file():
            return self._from_archive(address)
        return self._from_folder(address)

    async def _from_hub(self, address: HubAddress) -> Pulled:
        endpoint = hub_endpoint()
        token = os.environ.get("HF_TOKEN")
        async with Downloader(
            token=token, token_for=endpoint, first_wait_s=self.first_wait_s
        ) as downloader:
            commit = address.revision
            if not address.is_pinned:
                commit = await self._commit(downloader, endpoint, address)
            pinned = str(HubAddress(address.repo, commit))
            place = self.cache.place(f"hf-{address.repo}", commit)
            if place.exists():
                return Pulled(place, pinned)
            base = f"{endpoint}/datasets/{address.repo}/resolve/{commit}/"
            data = await downloader.small(base + MANIFEST, self.limits.manifest_bytes)
            return await self._folder(downloader, base, data, place, pinned)

    async def _commit(self, downloader: Downloader, endpoint: str, address: HubAddress) -> str:
        revision = quote(address.revision, safe="")
        url = f"{endpoint}/api/datasets/{address.repo}/revision/{revision}"
        try:
            commit = json.loads(await downloader.small(url, _ANSWER_BYTES))["sha"]
        except TransferFailed as error:
            raise self._with_cached(error, address) from None
        except (ValueError, TypeError, KeyError):
            raise TransferFailed(f"{url}: not the answer of a Hub") from None
        if not isinstance(commit, str) or not HubAddress(address.repo, commit).is_pinned:
            raise TransferFailed(f"{url}: names no commit")
        return commit

    def _with_cached(self, error: TransferFailed, address: HubAddress) -> TransferFailed:
        """The failure, and what could be used without a network."""
        source = f"hf:{address.repo}@"
        here = [one.address for one in self.cache.entries() if one.address.startswith(source)]
        return TransferFailed(f"{error}; in the cache: {', '.join(here)}") if here else error

    async def _from_web(self, address: WebAddress) -> Pulled:
        if address.sha256:
            place = self.cache.place(address.url, address.sha256)
            if place.exists():
                return Pulled(place, str(address))
        async with Downloader(first_wait_s=self.first_wait_s) as downloader:
            if address.is_archive:
                return await self._web_archive(downloader, address)
            base = address.url.removesuffix(MANIFEST).rstrip("/") + "/"
            data = await downloader.small(base + MANIFEST, self.limits.manifest_bytes)
            digest = _checked_digest(address, sha256(data).hexdigest())
            place = self.cache.place(address.url, digest)
            pinned = str(WebAddress(address.url, digest))
            if place.exists():
                return Pulled(place, pinned)
            return await self._folder(downloader, base, data, place, pinned)

    async def _folder(
        self, downloader: Downloader, base: str, data: bytes, place: Path, pinned: str
    ) -> Pulled:
        manifest = decode_checked(data, Path(MANIFEST), self.limits)
        with self.cache.partial(place) as partial:
            trace = partial / _TRACE
            download = _Download(downloader, base, trace, manifest, self.tell)
            await download.run()
            write_durably(trace / MANIFEST, data)
            return self._accept(partial, trace, place, pinned)

    async def _web_archive(self, downloader: Downloader, address: WebAddress) -> Pulled:
        key = self.cache.place(address.url, address.sha256 or "newest")
        with self.cache.partial(key) as partial:
            file = partial / _ARCHIVE
            most = self.limits.total_bytes
            await downloader.file(address.url, file, most, same=address.sha256 is not None)
            digest = _digest(file)
            if address.sha256 not in (None, digest):
                shutil.rmtree(partial)
            _checked_digest(address, digest)
            place = self.cache.place(address.url, digest)
            if place.exists():
                shutil.rmtree(partial)
                return Pulled(place, str(WebAddress(address.url, digest)))
            return self._unpacked(partial, file, place, str(WebAddress(address.url, digest)))

    def _from_archive(self, archive: Path) -> Pulled:
        """A local archive; its content decides which it is, not its name."""
        try:
            digest = _digest(archive)
        except OSError as error:
            raise disk_error(archive, error) from None
        place = self.cache.place(archive.name, digest)
        if place.exists():
            return Pulled(place, str(archive))
        with self.cache.partial(place) as partial:
            return self._unpacked(partial, archive, place, str(archive))

    def _unpacked(self, partial: Path, archive: Path, place: Path, pinned: str) -> Pulled:
        trace = partial / _TRACE
        shutil.rmtree(trace, ignore_errors=True)
        try:
            with Inspector(self.limits) as inspector:
                inspector.unpack(archive, trace)
        except NotTrusted:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return self._accept(partial, trace, place, pinned)

    def _from_folder(self, folder: Path) -> Pulled:
        if not folder.exists():
            raise TraceNotFound(f"{folder}: no such trace folder or archive")
        manifest = checked_manifest(folder, self.limits)
        digest = _digest(folder / MANIFEST)
        place = self.cache.place(str(folder.resolve()), digest)
        if place.exists():
            return Pulled(place, str(folder))
        with self.cache.partial(place) as partial:
            trace = partial / _TRACE
            shutil.rmtree(trace, ignore_errors=True)
            copy_listed(folder, trace, manifest)
            return self._accept(partial, trace, place, str(folder))

    def _accept(self, partial: Path, trace: Path, place: Path, pinned: str) -> Pulled:
        """Have it looked at; only then it has its place."""
        try:
            with Inspector(self.limits) as inspector:
                inspector.check(trace)
        except NotTrusted:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        name = checked_manifest(trace, self.limits).name
        self.cache.accept(partial, trace, place, cached(pinned, name, trace))
        return Pulled(place, pinned)


class _Download:
    """The files of one manifest, some at once, each checked as soon as it is here."""

    def __init__(
        self, downloader: Downloader, base: str, folder: Path, manifest: Manifest, tell: Tell
    ) -> None:
        self._downloader = downloader
        self._base = base
        self._folder = folder
        self._files = manifest.files
        self._tell = tell
        self._total = sum(entry.bytes for entry in manifest.files)
        self._done = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Fetch what is missing."""
        self._folder.mkdir(exist_ok=True)
        _remove_others(self._folder, {entry.path for entry in self._files})
        try:
            async with asyncio.TaskGroup() as files:
                for entry in self._files:
                    files.create_task(self._file(entry))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _file(self, entry: FileEntry) -> None:
        file = self._folder / entry.path
        async with self._turns:
            if not await asyncio.to_thread(_is, file, entry):
                file.parent.mkdir(exist_ok=True)
                part = self._folder / f"{entry.path}.part"
                url = self._base + quote(entry.path)
                await self._downloader.file(url, part, entry.bytes, same=True)
                if not await asyncio.to_thread(_is, part, entry):
                    part.unlink()
                    raise NotTrusted(f"{url}: refused: its sha256 is not the manifest's; try again")
                part.replace(file)
            self._done += entry.bytes
            self._tell(self._done, self._total)


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove what a pull of something else may have left."""
    for file in folder.rglob("*"):
        place = file.relative_to(folder).as_posix()
        if file.is_file() and place.removesuffix(".etag").removesuffix(".part") not in names:
            file.unlink()


def copy_listed(source: Path, target: Path, manifest: Manifest) -> None:
    """Copy the listed files and, at last, the manifest; links are not followed.

    Raises:
        TraceError: a file is missing, a link, or cannot be copied.
    """
    for name in [*(entry.path for entry in manifest.files), MANIFEST]:
        file, copy = source / name, target / name
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            if file.is_symlink():
                raise NotTrusted(f"{file}: refused: a link")
            shutil.copyfile(file, copy)
        except OSError as error:
            raise disk_error(file, error) from None


def _checked_digest(address: WebAddress, digest: str) -> str:
    if address.sha256 not in (None, digest):
        raise NotTrusted(f"{address.url}: refused: its sha256 is {digest}, not the one asked for")
    return digest


def _is(file: Path, entry: FileEntry) -> bool:
    """Whether the file is there and what the manifest says."""
    if not file.is_file() or file.stat().st_size != entry.bytes:
        return False
    return _digest(file) == entry.sha256


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
