"""The trace that a command is given: a folder, an archive, or an address that is pulled first."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from s2l.folders import TRACES, newest
from s2l.progress import percent_bar, say
from s2l.workloads.errors import TraceNotFound
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.sharing.address import ARCHIVES, SHIPPED, parse_address
from s2l.workloads.sharing.pulling import Pulled, Puller
from s2l.workloads.trace import Trace

_HOW: Final = "record one with: s2l collect crawl"


def named_trace(text: str | None) -> Path:
    """The folder of the trace; without a name, the newest one.

    Raises:
        click.UsageError: there is none. TraceError: it cannot be had, or is refused.
    """
    if text is None:
        return newest(TRACES, MANIFEST, kind="finished trace", how=_HOW)
    if text.startswith(SHIPPED):
        return shipped_trace(text.removeprefix(SHIPPED))
    if isinstance(parse_address(text), Path) and not text.endswith(ARCHIVES):
        return Path(text)
    return pulled(text).path


def shipped_trace(name: str) -> Path:
    """One of the small traces that come with the program.

    Raises:
        TraceNotFound: there is none of that name.
    """
    folder = Path(str(files("s2l.datasets").joinpath("pydocs"))).parent
    there = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
    if name not in there:
        raise TraceNotFound(f"{SHIPPED}{name}: no such trace; there are: {', '.join(there)}")
    # Where the program is installed as links to its files, the trace is where these lead.
    return (folder / name / MANIFEST).resolve().parent


def opened_trace(text: str | None) -> Trace:
    """As ``named_trace``, opened."""
    return Trace.open(named_trace(text))


def pulled(text: str) -> Pulled:
    """Pull with progress, and say what was pulled."""
    with percent_bar("fetching") as tell:
        found = Puller(tell=tell).pull(text)
    say(f"{found.address}: {found.path}")
    return found
