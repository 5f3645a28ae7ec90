import numpy as np
import pytest

from s2l.collectors.demo_site.latency import LatencyProfile


def _retrievals(profile: LatencyProfile, n: int, hits: int) -> list[list[float]]:
    """Arrival times of ``n`` retrievals: the search, then its pages fetched at once."""
    found = []
    for query in range(n):
        search_s = profile.search(f"/search?q={query}").total_s
        pages = [search_s + profile.page(f"/{query}/{hit}").total_s for hit in range(hits)]
        found.append([search_s, *sorted(pages)])
    return found


def test_retrievals_have_the_shape_of_the_published_crawl() -> None:
    arrivals = np.array(_retrievals(LatencyProfile(seed=7), 4000, hits=7))
    gaps, durations = np.diff(arrivals, axis=1).ravel(), arrivals[:, -1]
    # Stream2LLM's crawl: gaps of median 0.701 s, mean 1.053, p95 3.08, p99 5.29; mean 9.87 s.
    assert np.median(gaps) == pytest.approx(0.70, abs=0.08)
    assert gaps.mean() == pytest.approx(1.05, abs=0.08)
    assert np.percentile(gaps, 95) == pytest.approx(3.08, abs=0.25)
    assert np.percentile(gaps, 99) == pytest.approx(5.29, abs=0.5)
    assert 8 < durations.mean() < 10
    assert 15 < durations.max() < 45


def test_the_same_seed_and_address_give_the_same_latency_on_every_machine() -> None:
    latency = LatencyProfile(seed=0).page("/json.dumps.html")
    assert latency == LatencyProfile(seed=0).page("/json.dumps.html")
    assert latency.total_s == pytest.approx(3.465210, abs=1e-6)
    assert LatencyProfile(seed=1).page("/json.dumps.html") != latency
    assert LatencyProfile(seed=0).page("/json.loads.html") != latency


def test_a_body_comes_in_two_or_three_pieces_after_the_first_byte() -> None:
    profile = LatencyProfile()
    counts = set()
    for i in range(200):
        latency = profile.page(f"/{i}")
        counts.add(len(latency.pieces_s))
        assert 0 < latency.first_byte_s < latency.pieces_s[0]
        assert list(latency.pieces_s) == sorted(set(latency.pieces_s))
        assert latency.total_s == latency.pieces_s[-1]
    assert counts == {2, 3}


def test_speed_divides_every_time() -> None:
    slow, fast = LatencyProfile(speed=1).page("/x"), LatencyProfile(speed=4).page("/x")
    assert fast.first_byte_s == slow.first_byte_s / 4
    assert fast.pieces_s == tuple(at_s / 4 for at_s in slow.pieces_s)


def test_failures_are_a_share_of_the_pages_and_never_by_default() -> None:
    pages = [f"/{i}" for i in range(2000)]
    some = LatencyProfile(failure_rate=0.02)
    assert not any(LatencyProfile().page(page).fails for page in pages)
    assert 20 <= sum(some.page(page).fails for page in pages) <= 60
    assert not any(some.search(page).fails for page in pages)


@pytest.mark.parametrize("options", [{"speed": 0}, {"speed": float("nan")}, {"failure_rate": 1.1}])
def test_impossible_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give a"):
        LatencyProfile(**options)  # type: ignore[arg-type]
