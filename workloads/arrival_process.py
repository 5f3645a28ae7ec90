"""The arrival processes by name: how each is written, and what makes one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from s2l.workloads.arrivals.base import ArrivalProcess
from s2l.workloads.arrivals.rate_profile import parse_profile
from s2l.workloads.arrivals.recorded import Recorded
from s2l.workloads.arrivals.renewal import Renewal
from s2l.workloads.formats.delays import read_delays


@dataclass(frozen=True, slots=True)
class ArrivalForm:
    """How a kind of arrivals is written, what it does with a rate, and what makes one.

    ``rate`` is ``needed``, ``scales`` (recorded times are kept without one) or ``own`` (it states
    its rates itself). ``build`` takes what stands after the colon, and the burstiness.
    """

    syntax: str
    rate: Literal["needed", "scales", "own"]
    build: Callable[[str, float], ArrivalProcess]
    bursty: bool = False


def _constant(argument: str, burstiness: float) -> ArrivalProcess:
    return Renewal(math.inf)


def _poisson(argument: str, burstiness: float) -> ArrivalProcess:
    return Renewal(1.0)


def _gamma(argument: str, burstiness: float) -> ArrivalProcess:
    return Renewal(burstiness)


def _recorded(argument: str, burstiness: float) -> ArrivalProcess:
    return Recorded()


def _file(argument: str, burstiness: float) -> ArrivalProcess:
    return Recorded(tuple(read_delays(Path(argument))))


ARRIVAL_PROCESSES: Final[dict[str, ArrivalForm]] = {
    "constant": ArrivalForm("constant", "needed", _constant),
    "poisson": ArrivalForm("poisson", "needed", _poisson),
    "gamma": ArrivalForm("gamma", "needed", _gamma, bursty=True),
    "recorded": ArrivalForm("recorded", "scales", _recorded),
    "file": ArrivalForm("file:PATH", "scales", _file),
    "ramp": ArrivalForm("ramp:1..20/60s", "own", parse_profile, bursty=True),
    "step": ArrivalForm("step:5x30s,10x30s", "own", parse_profile, bursty=True),
}


def arrival_form(text: str) -> ArrivalForm:
    """The kind of arrivals that a text names. Raises ValueError that lists the choices."""
    name, colon, argument = text.partition(":")
    form = ARRIVAL_PROCESSES.get(name)
    if form is None:
        choices = ", ".join(form.syntax for form in ARRIVAL_PROCESSES.values())
        raise ValueError(f"arrival process {text!r} is not one of {choices}")
    if (":" in form.syntax) != bool(colon and argument):
        raise ValueError(f"arrival process {text!r} is to be written {form.syntax}")
    return form


def arrival_process(text: str, burstiness: float = 1.0) -> ArrivalProcess:
    """The process that ``text`` names, such as ``poisson`` or ``ramp:1..20/60s``.

    ``burstiness`` is the shape of the gaps' gamma distribution: 1 as in a Poisson process, below
    it bursty, above it more even, infinity without any chance.

    Raises:
        ValueError: no such process, or not written as it is to be; the choices are listed.
        ImportFailed, DiskError: a file of delays that cannot be read.
    """
    form = arrival_form(text)
    if burstiness != 1 and not form.bursty:
        bursty = ", ".join(name for name, form in ARRIVAL_PROCESSES.items() if form.bursty)
        raise ValueError(f"burstiness is for {bursty} only, and has no meaning for {text}")
    if not burstiness > 0:
        raise ValueError(f"burstiness is {burstiness}; it must be above 0 (1 is Poisson)")
    return form.build(text.partition(":")[2], burstiness)
