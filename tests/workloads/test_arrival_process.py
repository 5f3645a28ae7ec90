"""Arrival processes give the same offsets everywhere."""

from itertools import pairwise

import numpy as np
import pytest

from s2l.workloads.arrival_process import ARRIVAL_PROCESSES, arrival_process

POISSON_7 = [0, 490_542, 1_628_094, 2_375_448, 2_503_028]


def offsets(
    name: str, n: int, rate_qps: float, seed: int = 0, trace: tuple[int, ...] = ()
) -> list[int]:
    found = arrival_process(name)(n, rate_qps, seed, trace)
    assert found.dtype == np.int64
    values: list[int] = found.tolist()
    return values


def test_constant() -> None:
    assert offsets("constant", 4, 3) == [0, 333_333, 666_667, 1_000_000]


def test_poisson_exact_values() -> None:
    assert offsets("poisson", 5, 2.0, seed=7) == POISSON_7
    assert offsets("poisson", 3, 2.0, seed=7) == POISSON_7[:3]
    assert offsets("poisson", 5, 2.0, seed=8) != POISSON_7


def test_poisson_has_its_rate() -> None:
    found = offsets("poisson", 100_001, 20.0)
    assert found[-1] / 100_000 == pytest.approx(50_000, rel=0.01)
    gaps = np.diff(found)
    assert float(np.mean(gaps > 50_000)) == pytest.approx(np.exp(-1), abs=0.005)


def test_recorded_keeps_the_shape() -> None:
    trace = (1_000, 2_000, 5_000, 9_000)
    assert offsets("recorded", 4, 1.0, trace=trace) == [0, 375_000, 1_500_000, 3_000_000]
    assert offsets("recorded", 2, 4.0, trace=trace) == [0, 250_000]
    assert offsets("recorded", 3, 2.0, trace=(9, 1, 5)) == [0, 500_000, 1_000_000]
    assert offsets("recorded", 1, 2.0, trace=(9,)) == [0]


@pytest.mark.parametrize("name", ARRIVAL_PROCESSES)
@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_all_start_at_0_and_never_go_back(name: str, n: int) -> None:
    found = offsets(name, n, 12.5, seed=3, trace=tuple(range(0, 5_000, 10)))
    assert len(found) == n
    assert found[:1] == [0][:n]
    assert all(a <= b for a, b in pairwise(found))


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_must_be_above_0(rate: float) -> None:
    for process in ARRIVAL_PROCESSES.values():
        with pytest.raises(ValueError, match="must be above 0"):
            process(1, rate, 0, [0])


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="is not one of constant, poisson, recorded"):
        arrival_process("bursty")
    with pytest.raises(ValueError, match="n is -1; it must be 0 or more"):
        offsets("poisson", -1, 1.0)
    with pytest.raises(ValueError, match="3 queries asked for, 2 offsets recorded"):
        offsets("recorded", 3, 1.0, trace=(0, 1))
    with pytest.raises(ValueError, match="at the same moment"):
        offsets("recorded", 2, 1.0, trace=(5, 5))
