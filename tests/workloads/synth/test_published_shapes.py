"""The published shapes, at the published sizes: each figure within 5 %."""

from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from s2l.workloads.synth.profiles import profile_named
from s2l.workloads.synth.shape import QueryShape

Floats = npt.NDArray[np.float64]

CRAWL: Final = [
    ("rows", "mean", 7.86),
    ("gap_s", "mean", 1.053),
    ("gap_s", 50, 0.701),
    ("gap_s", 95, 3.08),
    ("gap_s", 99, 5.29),
    ("duration_s", "mean", 9.87),
    ("duration_s", 50, 9.29),
    ("duration_s", 95, 16.7),
    ("tokens", "mean", 8_889),
    ("tokens", 50, 5_749),
    ("tokens", 75, 11_167),
    ("tokens", 95, 28_372),
]
ANNS: Final = [
    ("rows", "mean", 4.42),
    ("gap_s", "mean", 0.157),
    ("gap_s", 50, 0.0367),
    ("gap_s", 95, 0.699),
    ("gap_s", 99, 2.079),
    ("duration_s", "mean", 3.63),
    ("duration_s", 50, 3.46),
    ("duration_s", 95, 5.38),
    ("tokens", "mean", 13_006),
    ("tokens", 50, 10_126),
    ("tokens", 95, 30_618),
]
PUBLISHED: Final = [
    ("stream2llm-crawl", 4_322, CRAWL, (1, 17), 34.9),
    ("stream2llm-anns", 4_997, ANNS, (1, 26), 8.0),
]


def quantities(shapes: list[QueryShape]) -> dict[str, Floats]:
    """What is published, of each query or gap."""
    gaps = [b.arrival_us - a.arrival_us for one in shapes for a, b in pairwise(one.arrivals)]
    return {
        "rows": np.array([len(one.arrivals) for one in shapes], dtype=np.float64),
        "gap_s": np.array(gaps) / 1e6,
        "duration_s": np.array([one.end_us for one in shapes]) / 1e6,
        "tokens": np.array([one.context_tokens for one in shapes], dtype=np.float64),
    }


def figure(values: Floats, what: str | int) -> float:
    return float(values.mean() if isinstance(what, str) else np.percentile(values, what))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("name", "n", "published", "rows", "longest_s"), PUBLISHED)
def test_every_published_figure(
    name: str,
    n: int,
    published: list[tuple[str, str | int, float]],
    rows: tuple[int, int],
    longest_s: float,
    seed: int,
) -> None:
    found = quantities(list(profile_named(name).shapes(n, seed)))
    off = {
        (quantity, what): figure(found[quantity], what) / wanted - 1
        for quantity, what, wanted in published
    }
    assert {key: share for key, share in off.items() if abs(share) > 0.05} == {}
    assert rows[0] <= found["rows"].min() <= found["rows"].max() <= rows[1]
    assert found["gap_s"].max() <= longest_s


@pytest.mark.parametrize("name", ["stream2llm-crawl", "stream2llm-anns"])
def test_small_workloads_have_the_shape_too(name: str) -> None:
    _, _, published, _, _ = next(one for one in PUBLISHED if one[0] == name)
    found = quantities(list(profile_named(name).shapes(300, 9)))
    for quantity, what, wanted in published:
        assert figure(found[quantity], what) == pytest.approx(wanted, rel=0.12)


def test_quantities_are_drawn_jointly() -> None:
    shapes = list(profile_named("stream2llm-crawl").shapes(4_322, 0))
    found = quantities(shapes)
    together = np.corrcoef([found["rows"], found["tokens"], found["duration_s"]])
    assert together[0, 1] == pytest.approx(0.5, abs=0.1)  # more pages, more tokens
    assert together[0, 2] == pytest.approx(0.45, abs=0.15)  # more pages, more time
    assert {len(one.arrivals) - 1 for one in shapes} == set(range(17))
    assert all(len(one.document_tokens) == len(one.arrivals) - 1 for one in shapes)


def test_updates_replace_what_was_near_before() -> None:
    for shape in profile_named("stream2llm-anns").shapes(200, 0):
        pools = [one.documents for one in shape.arrivals]
        assert {len(set(pool)) for pool in pools} == {10}
        assert all(5 <= len(set(a) & set(b)) <= 9 for a, b in pairwise(pools))
        assert shape.end_us >= shape.arrivals[-1].arrival_us
        assert min(shape.document_tokens) >= 1


def test_ragpulse_is_like_what_was_measured() -> None:
    shapes = list(profile_named("ragpulse").shapes(7_106, 0))
    tokens = np.array([one.context_tokens for one in shapes])
    assert tokens.mean() == pytest.approx(2_927, rel=0.05)
    assert np.percentile(tokens, [50, 75, 95]) == pytest.approx([3_124, 3_419, 4_408], rel=0.05)
    assert np.mean([len(one.arrivals) - 1 for one in shapes]) == pytest.approx(4.773, rel=0.01)
    assert np.mean([one.output_tokens or 0 for one in shapes]) == pytest.approx(283.2, rel=0.05)
    assert np.mean([one.question_tokens for one in shapes]) == pytest.approx(7.14, rel=0.05)


def test_seeds() -> None:
    profile = profile_named("stream2llm-crawl")
    first = list(profile.shapes(50, 4))
    assert first == list(profile.shapes(50, 4))
    assert first != list(profile.shapes(50, 5))


def test_the_first_shape_is_the_same_everywhere() -> None:
    shape = next(iter(profile_named("stream2llm-anns").shapes(3, 0)))
    assert (shape.end_us, shape.document_tokens[:3]) == FIRST


FIRST: Final = (3040993, (778, 1779, 1491))
