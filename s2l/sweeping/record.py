"""A sweep's folder: ``sweep.json`` with its options and points, and a run folder for each point."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from s2l.replayer.run import RunInfo
from s2l.workloads.durable import write_durably

SWEEP_FORMAT: Final = "s2l-sweep/1"
SWEEP: Final = "sweep.json"

_NO_SLOTS: Final = 1000


class SweepPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One rate. ``run`` is its folder's name in the sweep's. ``meets`` and ``why`` are by
    delivery, and empty where there are no objectives; ``saturated`` are the deliveries that did
    not complete what was offered."""

    rate_qps: float
    run: str
    verdict: str
    meets: dict[str, bool] = {}
    why: dict[str, str] = {}
    saturated: list[str] = []


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """``sweep.json``. ``options`` are those of the command by name; ``slo`` as it was given.
    ``highest_qps`` is, by delivery, the highest rate that met the objectives, none or None."""

    format: str
    created_utc: str
    command: list[str]
    trace: str
    options: dict[str, Any]
    slo: str | None = None
    points: list[SweepPoint] = []
    highest_qps: dict[str, float | None] = {}
    ended: str = ""
    """Why no more points are to come; empty where some still are."""


def read_sweep(folder: Path) -> Sweep:
    """The sweep in a folder.

    Raises:
        click.UsageError: there is none, or none that this version can read.
    """
    file = folder / SWEEP
    try:
        head = msgspec.json.decode(file.read_bytes())
        found = head.get("format") if isinstance(head, dict) else None
        if found != SWEEP_FORMAT:
            raise click.UsageError(f"{file}: format {found!r}; this version reads {SWEEP_FORMAT}")
        return msgspec.convert(head, Sweep)
    except FileNotFoundError:
        raise click.UsageError(f"{folder}: no sweep is in it (no {SWEEP})") from None
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"{file}: damaged: {error}") from None


def write_sweep(folder: Path, sweep: Sweep) -> None:
    """Write ``sweep.json`` whole. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / SWEEP, msgspec.json.format(msgspec.json.encode(sweep), indent=2))


def run_folder(folder: Path, rate_qps: float) -> Path:
    """A folder for a point that is not there yet: an interrupted one is left as it is."""
    stem = f"qps-{rate_qps:g}"
    candidates = (folder / (stem if n == 1 else f"{stem}-{n}") for n in range(1, _NO_SLOTS))
    return next(path for path in candidates if not path.exists())


def saturated_in(info: RunInfo) -> list[str]:
    """The passes of a run that the server could not keep up with, as its validity says."""
    found = [f.text.partition(":")[0] for f in info.validity.findings if f.check == "saturated"]
    return list(dict.fromkeys(found))


def tried(points: list[SweepPoint], delivery: str) -> Mapping[float, bool]:
    """Which rates met the objectives in a delivery."""
    return {p.rate_qps: p.meets[delivery] for p in points if delivery in p.meets}
