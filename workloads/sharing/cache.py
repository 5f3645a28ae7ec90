"""Traces that were pulled, on this machine: whole ones only, each under where it came from."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from platformdirs import user_cache_path

from s2l.workloads.durable import sync_folder, sync_tree, write_durably
from s2l.workloads.errors import TraceError, TraceNotFound, disk_error
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.sharing.address import HUB, HubAddress, WebAddress, parse_address

VARIABLE: Final = "S2L_CACHE"
_PARTIAL: Final = "partial"
_TRACES: Final = "traces"


class Cached(msgspec.Struct, frozen=True):
    """A trace of the cache. ``address`` gives it again, exactly as it is."""

    address: str
    name: str
    bytes: int
    pulled_utc: str
    path: str = ""


class TraceCache:
    """A folder of pulled traces. Several programs may use it at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()

    def place(self, source: str, version: str) -> Path:
        """Where the version of what is at ``source`` is, once it is whole."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", source).strip("-.")[-60:]
        digest = sha256(source.encode()).hexdigest()[:8]
        return self.root / _TRACES / f"{words}-{digest}" / version

    @contextmanager
    def partial(self, place: Path) -> Iterator[Path]:
        """A folder to fetch into, kept until it is whole; one program at a time has it.

        Raises:
            TraceError: another program is fetching the same.
        """
        key = sha256(str(place.relative_to(self.root)).encode()).hexdigest()[:24]
        folder = self.root / _PARTIAL / key
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise disk_error(folder, error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder
        except BlockingIOError:
            raise TraceError(f"{place}: another program is fetching it; wait for it") from None
        finally:
            os.close(lock)

    def accept(self, partial: Path, trace: Path, place: Path, cached: Cached) -> Path:
        """Give a whole, checked trace its place, and forget the rest of ``partial``."""
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_durably(_facts(place), msgspec.json.encode(cached))
            if not place.exists():
                sync_tree(trace)
                os.rename(trace, place)
                sync_folder(place.parent)
            shutil.rmtree(partial, ignore_errors=True)
        except OSError as error:
            raise disk_error(place, error) from None
        return place

    def entries(self) -> list[Cached]:
        """All whole traces, by address."""
        found = [
            msgspec.structs.replace(_read(file), path=str(file.with_suffix("")))
            for file in (self.root / _TRACES).glob("*/*.json")
            if (file.with_suffix("") / MANIFEST).is_file()
        ]
        return sorted(found, key=lambda one: one.address)

    def remove(self, address: str) -> list[Cached]:
        """Remove the trace of this address, or all of what its source has; what was removed.

        Raises:
            BadAddress: it is empty, or begins like an address and is none.
            TraceNotFound: there is none.
        """
        parse_address(address)
        chosen = [
            one
            for one in self.entries()
            if address in (one.address, _source(one.address), one.path)
        ]
        if not chosen:
            raise TraceNotFound(f"{address}: not in the cache; see: s2l dataset list")
        for one in chosen:
            _remove(Path(one.path), self.root / _PARTIAL)
        return chosen

    def clear(self) -> list[Cached]:
        """Remove all traces and all parts of some; the traces that were removed."""
        found = self.entries()
        for name in (_TRACES, _PARTIAL):
            shutil.rmtree(self.root / name, ignore_errors=True)
        return found


def default_root() -> Path:
    """``S2L_CACHE``, or this user's cache folder."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else user_cache_path("s2l")


def cached(address: str, name: str, folder: Path) -> Cached:
    """The facts of a trace that has just been pulled into ``folder``."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Cached(address, name, size, datetime.now(UTC).isoformat(timespec="seconds"))


def _source(address: str) -> str:
    """What is at an address in any version: no commit on the Hub, no hash on the web."""
    parsed = parse_address(address)
    if isinstance(parsed, HubAddress):
        return f"{HUB}{parsed.repo}"
    return parsed.url if isinstance(parsed, WebAddress) else address


def _facts(place: Path) -> Path:
    return place.with_name(place.name + ".json")


def _read(file: Path) -> Cached:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Cached)
    except (OSError, msgspec.MsgspecError) as error:
        raise TraceError(f"{file}: damaged ({error}); remove its folder") from None


def _remove(place: Path, aside: Path) -> None:
    """Out of its place at once, so that nobody meets half of it."""
    try:
        aside.mkdir(parents=True, exist_ok=True)
        gone = aside / f"removed-{os.getpid()}-{place.name}"
        os.rename(place, gone)
        _facts(place).unlink(missing_ok=True)
        shutil.rmtree(gone)
    except OSError as error:
        raise disk_error(place, error) from None
