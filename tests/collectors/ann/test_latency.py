from itertools import pairwise

import numpy as np
import pytest

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.latency import AsMeasured, PublishedGaps, TimeScale
from s2l.collectors.ann.progressive_search import Search, Update


def search(*times_us: int, start_us: int = 500) -> Search:
    """Updates at these times, each a microsecond's work; the search ends 20 µs after the last."""
    updates = tuple(Update("ivf", i + 1, at - 1, at, (i,)) for i, at in enumerate(times_us))
    return Search(updates, start_us, (times_us[-1] if times_us else start_us) + 20, {"ivf": 9})


def test_measured_times_stay() -> None:
    found = search(510, 530)
    assert AsMeasured().timed(0, found) is found
    assert AsMeasured().options() == {"latency": "measured"}


def test_time_scale_starts_with_the_search() -> None:
    model = TimeScale(10)
    found = model.timed(0, search(510, 530))
    assert [(u.start_us, u.at_us) for u in found.updates] == [(590, 600), (790, 800)]
    assert (found.start_us, found.end_us) == (500, 1000)
    assert model.options() == {"latency": "stretched", "time_scale": 10}


@pytest.mark.parametrize("factor", [0.5, float("nan"), float("inf"), 1e7])
def test_times_are_never_shortened(factor: float) -> None:
    with pytest.raises(AnnError, match="give 1 or more"):
        TimeScale(factor)


def test_published_gaps_and_durations() -> None:
    counts = [1 + number % 4 for number in range(400)]
    searches = [search(*range(510, 510 + n)) for n in counts]
    model = PublishedGaps(counts, seed=0)
    timed = [model.timed(number, one) for number, one in enumerate(searches)]
    gaps_ms = [(b.at_us - a.at_us) / 1e3 for one in timed for a, b in pairwise(one.updates)]
    assert len(gaps_ms) == sum(counts) - 400
    found = [*np.percentile(gaps_ms, [50, 95, 99]), np.mean(gaps_ms)]
    np.testing.assert_allclose(found, [36.7, 699, 2079, 157], rtol=0.04)
    durations_s = [(one.end_us - one.start_us) / 1e6 for one in timed]
    found = [*np.percentile(durations_s, [50, 95]), np.mean(durations_s)]
    np.testing.assert_allclose(found, [3.46, 5.38, 3.63], rtol=0.02)
    assert all(one.updates[0].at_us == 510 for one in timed)
    assert model.options() == {"latency": "stretched", "gaps": "stream2llm-anns"}


def test_published_gaps_follow_the_seed() -> None:
    one = search(510, 520, 530)
    assert PublishedGaps([3, 3], 1).timed(1, one) == PublishedGaps([3, 3], 1).timed(1, one)
    assert PublishedGaps([3, 3], 1).timed(1, one) != PublishedGaps([3, 3], 2).timed(1, one)


def test_more_updates_than_planned_and_none() -> None:
    model = PublishedGaps([1, 2], 0)
    found = model.timed(0, search(*range(510, 540)))
    times = [u.at_us for u in found.updates]
    assert len(times) == 30
    assert all(b - a >= 1000 for a, b in pairwise(times))
    assert found.end_us >= times[-1]
    empty = model.timed(1, search())
    assert empty.updates == ()
    assert empty.end_us > empty.start_us


def test_slower_searches_are_not_made_faster() -> None:
    found = PublishedGaps([2], 0).timed(0, search(510, 60_000_510))
    assert [u.at_us for u in found.updates] == [510, 60_000_510]
    assert found.end_us == 60_000_530
