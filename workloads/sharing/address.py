"""Where a trace is: a folder, an archive, the Hub, or the web."""

import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from s2l.workloads.sharing.errors import BadAddress

HUB: Final = "hf:"
SHIPPED: Final = "shipped:"
MAIN: Final = "main"
ARCHIVES: Final = (".tar", ".tar.gz", ".tar.zst")

_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION: Final = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A dataset of the Hub at a revision: a branch, a tag or a commit."""

    repo: str
    revision: str = MAIN

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, which always stays the same."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return f"{HUB}{self.repo}@{self.revision}"


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A folder or an archive on the web; ``sha256`` is what the archive, or the folder's
    manifest, must have."""

    url: str
    sha256: str | None = None

    @property
    def is_archive(self) -> bool:
        """Whether it is one file."""
        return urlsplit(self.url).path.endswith(ARCHIVES)

    def __str__(self) -> str:
        return f"{self.url}#sha256={self.sha256}" if self.sha256 else self.url


Address = HubAddress | WebAddress | Path


def parse_address(text: str) -> Address:
    """``hf:user/name@revision``, ``https://host/folder/``, ``https://host/name.tar``, or a path.

    Raises:
        BadAddress: it begins like one of them and is none, or nothing is written at all.
    """
    if not text.strip():
        raise BadAddress("an empty address; write hf:user/name, https://host/name.tar or a path")
    if text.startswith(HUB):
        return _hub(text)
    if "://" in text:
        return _web(text)
    return Path(text)


def _hub(text: str) -> HubAddress:
    repo, at, revision = text.removeprefix(HUB).partition("@")
    if not _REPO.fullmatch(repo) or ".." in repo:
        raise BadAddress(f"{text!r}: no dataset of the Hub; write hf:user/name or hf:user/name@v1")
    if at and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise BadAddress(f"{text!r}: no revision; write a branch, a tag or a commit after the @")
    return HubAddress(repo, revision or MAIN)


def _web(text: str) -> WebAddress:
    try:
        parts = urlsplit(text)
        check_url(text)
    except ValueError as error:
        raise BadAddress(f"{text!r}: {error}") from None
    pin = _SHA256.fullmatch(parts.fragment)
    if parts.fragment and pin is None:
        raise BadAddress(f"{text!r}: after the # only sha256=, and 64 hexadecimal digits")
    return WebAddress(urlunsplit((*parts[:4], "")), pin[1] if pin else None)


def check_url(url: str) -> None:
    """Raise ValueError unless it is https, or http to this machine."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("has no host; write https://host/path")
    if parts.username or parts.password:
        raise ValueError("has a password in it; leave it out")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_this_machine(parts.hostname)):
        raise ValueError("must begin with https://")


def is_this_machine(host: str) -> bool:
    """Whether the host is the loopback interface."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def hub_endpoint() -> str:
    """Where the Hub is: ``HF_ENDPOINT``, as its own programs take it, or its usual place.

    Raises:
        BadAddress: ``HF_ENDPOINT`` is no address.
    """
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    try:
        check_url(endpoint)
    except ValueError as error:
        raise BadAddress(f"HF_ENDPOINT {endpoint!r}: {error}") from None
    return endpoint
