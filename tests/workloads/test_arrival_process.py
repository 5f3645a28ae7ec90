"""Arrival processes give the same offsets everywhere."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from s2l.workloads.arrival_process import ARRIVAL_PROCESSES, arrival_process
from s2l.workloads.arrivals.exact_math import exp, log
from s2l.workloads.arrivals.unit_gaps import unit_gaps
from s2l.workloads.errors import ImportFailed

POISSON_7 = [0, 490_542, 1_628_094, 2_375_448, 2_503_028]
BURSTY_7 = [0, 1_295_563, 1_773_350, 1_879_536, 2_058_368, 2_059_266]
EVEN_7 = [0, 606_580, 920_019, 1_396_327, 1_729_654, 2_271_943]

RATED = ("constant", "poisson", "gamma", "recorded")


def offsets(
    text: str,
    n: int,
    rate_qps: float | None,
    seed: int = 0,
    trace: tuple[int, ...] = (),
    burstiness: float = 1.0,
) -> list[int]:
    found = arrival_process(text, burstiness)(n, rate_qps, seed, trace)
    assert found.dtype == np.int64
    values: list[int] = found.tolist()
    return values


def test_constant() -> None:
    assert offsets("constant", 4, 3) == [0, 333_333, 666_667, 1_000_000]


def test_poisson_exact_values() -> None:
    assert offsets("poisson", 5, 2.0, seed=7) == POISSON_7
    assert offsets("poisson", 3, 2.0, seed=7) == POISSON_7[:3]
    assert offsets("poisson", 5, 2.0, seed=8) != POISSON_7


def test_gamma_exact_values() -> None:
    assert offsets("gamma", 6, 2.0, seed=7, burstiness=0.5) == BURSTY_7
    assert offsets("gamma", 6, 2.0, seed=7, burstiness=4) == EVEN_7
    assert offsets("gamma", 5, 2.0, seed=7) == POISSON_7
    assert offsets("gamma", 4, 3, burstiness=math.inf) == offsets("constant", 4, 3)


@pytest.mark.parametrize("burstiness", [0.2, 1.0, 3.0])
def test_more_starts_begin_with_the_same_ones(burstiness: float) -> None:
    many = offsets("gamma", 5_000, 10, seed=3, burstiness=burstiness)
    assert offsets("gamma", 700, 10, seed=3, burstiness=burstiness) == many[:700]


def test_poisson_has_its_rate() -> None:
    found = offsets("poisson", 100_001, 20.0)
    assert found[-1] / 100_000 == pytest.approx(50_000, rel=0.01)
    gaps = np.diff(found)
    assert float(np.mean(gaps > 50_000)) == pytest.approx(np.exp(-1), abs=0.005)


@pytest.mark.parametrize("shape", [0.5, 2.0])
def test_gamma_gaps_have_their_distribution(shape: float) -> None:
    """Kolmogorov-Smirnov against the distribution functions that have a closed form."""
    n = 50_000
    ordered = np.sort(unit_gaps(n, shape, 11)) * shape
    if shape == 2.0:
        expected = 1 - (1 + ordered) * np.exp(-ordered)
    else:
        expected = np.array([math.erf(math.sqrt(x)) for x in ordered])
    distance = np.max(np.abs(expected - (np.arange(n) + 0.5) / n))
    assert distance < 1.63 / math.sqrt(n)


def test_logarithm_and_exponential_are_those_of_the_library() -> None:
    x = np.concatenate([np.linspace(1e-9, 3, 10_001), [2.0**-54, 1e300]])
    assert np.allclose(log(x), np.log(x), rtol=1e-15, atol=0)
    y = np.linspace(-700, 700, 10_001)
    assert np.allclose(exp(y), np.exp(y), rtol=1e-15, atol=0)
    assert exp(np.array([-1e9, 0.0])).tolist() == [0.0, 1.0]


def test_recorded_keeps_the_shape() -> None:
    trace = (1_000, 2_000, 5_000, 9_000)
    assert offsets("recorded", 4, 1.0, trace=trace) == [0, 375_000, 1_500_000, 3_000_000]
    assert offsets("recorded", 2, 4.0, trace=trace) == [0, 250_000]
    assert offsets("recorded", 3, 2.0, trace=(9, 1, 5)) == [0, 500_000, 1_000_000]
    assert offsets("recorded", 1, 2.0, trace=(9,)) == [0]
    assert offsets("recorded", 4, None, trace=trace) == [0, 1_000, 4_000, 8_000]


def test_recorded_times_begin_again_one_mean_gap_after_the_last() -> None:
    assert offsets("recorded", 5, None, trace=(0, 10, 40)) == [0, 10, 40, 60, 70]
    assert offsets("recorded", 5, 1.0, trace=(7, 8)) == [0, 10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6]
    assert offsets("recorded", 3, 2.0, trace=(9,)) == [0, 500_000, 1_000_000]


def test_a_file_of_delays(tmp_path: Path) -> None:
    file = tmp_path / "delays.txt"
    file.write_text("# saved\n2.5\n0.5\n1\n")
    assert offsets(f"file:{file}", 3, None) == [0, 500_000, 1_500_000]
    assert offsets(f"file:{file}", 3, 4.0, trace=(1, 2, 3)) == [0, 166_667, 500_000]
    file.write_text("1\nsoon\n")
    with pytest.raises(ImportFailed, match="line 2: 'soon' is not seconds"):
        arrival_process(f"file:{file}")


def test_steps_without_chance() -> None:
    found = offsets("step:5x1s,10x1s", 17, None, burstiness=math.inf)
    assert found[:6] == [0, 200_000, 400_000, 600_000, 800_000, 1_000_000]
    assert found[6:9] == [1_100_000, 1_200_000, 1_300_000]
    assert found[15:] == [2_000_000, 2_100_000]  # the last rate goes on


def test_a_pause_between_steps() -> None:
    found = offsets("step:2x1s,0x5s,2x1s", 5, None, burstiness=math.inf)
    assert found == [0, 500_000, 6_000_000, 6_500_000, 7_000_000]


def test_a_ramp_without_chance() -> None:
    """With a rate of t, t^2 / 2 starts are expected by then: the k-th is at sqrt(2 k)."""
    found = offsets("ramp:0..10/10s", 51, None, burstiness=math.inf)
    assert found[1:] == [round(math.sqrt(2 * k) * 1e6) for k in range(1, 51)]


def test_a_ramp_exact_values() -> None:
    expected = [0, 863_127, 2_368_198, 3_164_917, 3_291_096, 3_463_561]
    assert offsets("ramp:1..20/60s", 6, None, seed=7) == expected
    assert offsets("ramp:1..20/1m", 6, None, seed=7) == expected


def test_a_constant_rate_is_a_ramp_that_stays() -> None:
    ramp = offsets("ramp:2..2/10s", 200, None, seed=7)
    assert np.max(np.abs(np.array(ramp) - offsets("poisson", 200, 2.0, seed=7))) <= 100


@pytest.mark.parametrize("name", RATED)
@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_all_start_at_0_and_never_go_back(name: str, n: int) -> None:
    _check_order(offsets(name, n, 12.5, seed=3, trace=tuple(range(0, 5_000, 10))), n)


@pytest.mark.parametrize("text", ["ramp:1..20/60s,20..5/1s", "step:5x30s,0x1s,10x30s"])
@pytest.mark.parametrize("n", [0, 1, 2, 2_000])
def test_profiles_start_at_0_and_never_go_back(text: str, n: int) -> None:
    for burstiness in (0.1, 1, math.inf):
        _check_order(offsets(text, n, None, seed=3, burstiness=burstiness), n)


def _check_order(found: list[int], n: int) -> None:
    assert len(found) == n
    assert found[:1] == [0][:n]
    assert all(a <= b for a, b in pairwise(found))


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", RATED)
def test_a_rate_must_be_above_0(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        arrival_process(name)(1, rate, 0, [0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bursty", r"'bursty' is not one of constant, poisson, gamma, recorded, file:PATH, ramp:"),
        ("file", "'file' is to be written file:PATH"),
        ("file:", "'file:' is to be written file:PATH"),
        ("poisson:3", "'poisson:3' is to be written poisson"),
        ("ramp:1-20/60s", r"'1-20/60s' is neither a ramp nor a step; write ramp:1..20/60s or"),
        ("step:5x30", "'5x30' is neither"),
        ("step:5x30s,", "'' is neither"),
        ("step:5x0s", "'5x0s' lasts no time"),
        ("step:0x5s,1x5s", "'0x5s,1x5s' begins with a pause"),
    ],
)
def test_how_it_is_written(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arrival_process(text)


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="n is -1; it must be 0 or more"):
        offsets("poisson", -1, 1.0)
    with pytest.raises(ValueError, match="these arrivals need a rate"):
        offsets("poisson", 3, None)
    with pytest.raises(ValueError, match="would last for centuries"):
        offsets("constant", 3, 1e-12)
    with pytest.raises(ValueError, match="at the same moment"):
        offsets("recorded", 2, 1.0, trace=(5, 5))
    with pytest.raises(ValueError, match="no offsets are recorded"):
        offsets("recorded", 2, 1.0)
    with pytest.raises(ValueError, match="has no rate to go on at"):
        offsets("recorded", 2, None, trace=(5,))
    with pytest.raises(ValueError, match="state their own rates"):
        offsets("ramp:1..2/3s", 1, 1.0)


def test_burstiness_where_it_means_something() -> None:
    with pytest.raises(ValueError, match="burstiness is for gamma, ramp, step only"):
        arrival_process("poisson", 2.0)
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="must be above 0"):
            arrival_process("gamma", wrong)


def test_each_form_is_written_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "delays.txt"
    file.write_text("1\n")
    for form in ARRIVAL_PROCESSES.values():
        rate_qps = 2.0 if form.rate == "needed" else None
        found = arrival_process(form.syntax.replace("PATH", str(file)))(1, rate_qps, 0, [5])
        assert found.tolist() == [0]
