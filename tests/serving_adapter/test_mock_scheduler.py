"""The mock's model as arithmetic: queue, KV cache, prefix cache and latencies, without a clock."""

import random
from collections.abc import Sequence

from s2l.serving_adapter.mock.draw import FAULT, JITTER, uniform
from s2l.serving_adapter.mock.kv_cache import KvCache, block_keys
from s2l.serving_adapter.mock.latencies import Latencies
from s2l.serving_adapter.mock.lateness import Lateness
from s2l.serving_adapter.mock.prefix_memory import PrefixMemory
from s2l.serving_adapter.mock.scheduler import Job, Scheduler
from s2l.serving_adapter.mock.vocabulary import Vocabulary, count_tokens

MS = 1_000_000
LATENCIES = Latencies(prefill_tokens_per_s=1000.0, overhead_s=0.010, tpot_s=0.002)


class Model:
    """A scheduler, and requests of given sizes to hand to it."""

    def __init__(
        self,
        *,
        kv_tokens: int = 16_000,
        max_concurrency: int = 100,
        latencies: Latencies = LATENCIES,
    ) -> None:
        cache = KvCache(kv_tokens, block_size=16)
        self.scheduler = Scheduler(latencies, cache, max_concurrency, seed=3)
        self.started: list[int] = []

    def submit(
        self, number: int, at_ms: float, prompt: Sequence[object], output_tokens: int = 5
    ) -> Job:
        keys = block_keys(prompt, 16, "")
        job = Job(
            number=number,
            prompt_tokens=len(prompt),
            output_tokens=output_tokens,
            decode_ns=(output_tokens - 1) * 2 * MS,
            keys=keys,
            on_start=lambda: self.started.append(number),
        )
        self.scheduler.submit(job, round(at_ms * MS))
        return job


def times_ms(job: Job) -> tuple[float, float, float]:
    """Start, first and last token."""
    return job.start_ns / MS, job.first_ns / MS, job.last_ns / MS


def test_the_first_token_comes_after_overhead_and_prefill_and_the_others_at_their_pace() -> None:
    job = Model().submit(1, 100, range(50), output_tokens=5)
    assert times_ms(job) == (100, 100 + 10 + 50, 168)


def test_a_constant_ttft_does_not_depend_on_the_prompt() -> None:
    model = Model(latencies=Latencies(ttft_s=0.05))
    assert times_ms(model.submit(1, 0, range(5000)))[1] == 50


def test_jitter_is_drawn_by_seed_and_number() -> None:
    model = Model(latencies=Latencies(ttft_s=0.05, ttft_jitter_s=0.02))
    firsts = [model.submit(n, 0, range(8)).first_ns for n in (1, 2, 3)]
    assert firsts == [round((0.05 + 0.02 * uniform(3, JITTER, n)) * 1e9) for n in (1, 2, 3)]
    assert len(set(firsts)) == 3


def test_beyond_the_concurrency_requests_start_when_others_end_to_the_nanosecond() -> None:
    model = Model(max_concurrency=2)
    a, b, c, d = (model.submit(n, n, range(n * 10), output_tokens=1) for n in (1, 2, 3, 4))
    assert (model.scheduler.running, len(model.scheduler.waiting)) == (2, 2)
    assert (a.last_ns, b.last_ns) == (21 * MS, 32 * MS)
    model.scheduler.finish(a, a.last_ns)
    model.scheduler.finish(b, b.last_ns)
    assert times_ms(c) == (21, 21 + 10 + 30, 61)
    assert times_ms(d) == (32, 32 + 10 + 40, 82)
    assert model.started == [1, 2, 3, 4]


def test_requests_wait_for_kv_blocks_in_order_of_arrival() -> None:
    model = Model(kv_tokens=10 * 16)
    a = model.submit(1, 0, range(90), output_tokens=6)  # 96 tokens: 6 blocks
    b = model.submit(2, 1, [f"b{i}" for i in range(64)], output_tokens=1)  # 65 tokens: 5 blocks
    model.submit(3, 2, ["c"], output_tokens=1)  # 1 block: there is room, but not its turn
    assert model.started == [1]
    assert model.scheduler.cache.used_blocks == 6
    model.scheduler.prefilled(a)
    model.scheduler.finish(a, a.last_ns)
    assert model.started == [1, 2, 3]
    assert b.start_ns == a.last_ns
    assert model.scheduler.cache.used_blocks == 6


def test_a_request_that_can_never_fit_is_known() -> None:
    model = Model(kv_tokens=160)
    assert model.scheduler.fits(160)
    assert not model.scheduler.fits(161)


def test_a_prefix_is_prefilled_once_and_whole_blocks_of_it_are_reused() -> None:
    model = Model()
    prompt = list(range(50))
    first = model.submit(1, 0, prompt)
    beside = model.submit(2, 1, prompt)  # the first is not prefilled yet
    model.scheduler.prefilled(first)
    model.scheduler.prefilled(beside)
    after = model.submit(3, 1000, [*prompt, *range(100, 120)])
    assert (first.cached_tokens, beside.cached_tokens, after.cached_tokens) == (0, 0, 48)
    assert times_ms(after)[1] == 1000 + 10 + (70 - 48)
    totals = model.scheduler.totals
    assert (totals.prefix_queries, totals.prefix_hits) == (170, 48)


def test_of_a_whole_prompt_at_least_one_token_is_computed() -> None:
    model = Model()
    model.scheduler.prefilled(model.submit(1, 0, range(32)))
    assert model.submit(2, 1000, range(32)).cached_tokens == 16
    assert model.submit(3, 1000, range(33)).cached_tokens == 32


def test_other_salts_and_other_beginnings_share_nothing() -> None:
    cache = KvCache(1600, block_size=16)
    keys = block_keys(range(32), 16, "one")
    holding = cache.hold(keys, 32, 33)
    assert holding is not None
    cache.prefilled(holding, 32)
    for other in (block_keys(range(32), 16, "two"), block_keys(range(1, 33), 16, "one")):
        held = cache.hold(other, 33, 33)
        assert held is not None
        assert held.cached_blocks == 0


def test_an_aborted_prefill_leaves_what_was_computed() -> None:
    model = Model()
    job = model.submit(1, 0, range(100))
    model.scheduler.abort(job, (10 + 40) * MS)  # 40 tokens by then: 2 whole blocks
    assert model.submit(2, 1000, range(100)).cached_tokens == 32
    assert model.scheduler.running == 1


def test_aborting_who_waits_lets_the_next_one_go() -> None:
    model = Model(kv_tokens=160)
    model.submit(1, 0, range(100))
    blocked = model.submit(2, 1, [f"b{i}" for i in range(100)])
    model.submit(3, 2, ["c"])
    model.scheduler.abort(blocked, 3 * MS)
    assert model.started == [1, 3]


def test_blocks_that_nobody_holds_go_least_recently_used_first() -> None:
    model = Model(kv_tokens=8 * 16)
    for n, word in ((1, "a"), (2, "b")):  # two blocks to find again, one empty after the end
        job = model.submit(n, n, [word] * 32, output_tokens=1)
        model.scheduler.prefilled(job)
        model.scheduler.finish(job, n * MS)
    big = model.submit(3, 10, ["big"] * 90, output_tokens=6)  # 6 of 8 blocks: the ends of a go
    model.scheduler.finish(big, 11 * MS)
    assert model.submit(4, 20, ["b"] * 33, output_tokens=1).cached_tokens == 32
    assert model.submit(5, 20, ["a"] * 33, output_tokens=1).cached_tokens == 0


def test_the_cache_can_be_cleared_when_nothing_runs() -> None:
    model = Model()
    job = model.submit(1, 0, range(33))
    model.scheduler.prefilled(job)
    assert not model.scheduler.cache.clear()
    model.scheduler.finish(job, 1)
    assert model.scheduler.cache.clear()
    assert model.submit(2, 2, range(33)).cached_tokens == 0


def test_blocks_are_neither_lost_nor_made_up() -> None:
    draw = random.Random(5)
    model = Model(kv_tokens=40 * 16, max_concurrency=6)
    running: list[Job] = []
    for n in range(2000):
        prompt = [draw.randrange(3)] * draw.randrange(1, 200) + [n] * draw.randrange(40)
        running.append(model.submit(n, n, prompt, output_tokens=draw.randrange(1, 30)))
        if draw.random() < 0.5:
            model.scheduler.prefilled(running[0])
        if len(running) > 8:
            job = running.pop(draw.randrange(len(running)))
            end = model.scheduler.finish if job.holding else model.scheduler.abort
            end(job, n * MS)
        cache, held = model.scheduler.cache, [j.holding for j in running if j.holding]
        shared = {key for holding in held for key in holding.shared}
        assert cache.used_blocks == len(shared) + sum(holding.own for holding in held)
        assert 0 <= cache.used_blocks <= 40
    for job in running:
        model.scheduler.abort(job, 3000 * MS)
    assert model.scheduler.cache.used_blocks == model.scheduler.running == 0


def test_draws_are_the_same_everywhere_and_spread_evenly() -> None:
    assert [round(uniform(7, FAULT, n), 6) for n in (1, 2, 3)] == [0.954782, 0.439199, 0.022954]
    draws = [uniform(0, JITTER, n) for n in range(20_000)]
    assert abs(sum(draws) / len(draws) - 0.5) < 0.01
    assert abs(sum(d < 0.1 for d in draws) / len(draws) - 0.1) < 0.01


def test_the_realtime_side_finds_again_what_it_computed() -> None:
    memory = PrefixMemory(4 * 16, 16)
    memory.add(range(50), "salt")
    assert memory.find(range(50), "salt") == 48
    assert memory.find(range(48), "salt") == 32
    assert memory.find(range(50), "other") == 0
    memory.add(range(100, 132), "salt")  # 5 blocks, room for 4: the end of the first goes
    assert memory.find(range(50), "salt") == 32


def test_counting_is_as_the_tokenizer_counts() -> None:
    vocabulary = Vocabulary()
    for text in ("", "a", " a b\n\nc ", "\u00a0x\u2003y", "one  two\x1cthree\t", "\n"):
        assert count_tokens(text) == len(vocabulary.encode(text)), text
        assert vocabulary.decode(vocabulary.encode(text)) == text


def test_lateness_is_counted_by_the_microsecond() -> None:
    lateness = Lateness()
    assert lateness.percentile_ms(99) is None
    for late_us in range(1000):
        lateness.add(late_us * 1000 + 999)
    lateness.add(10**12)
    assert lateness.percentile_ms(50) == 0.501
    assert lateness.percentile_ms(99) == 0.991
    assert lateness.percentile_ms(100) == 100.001
    lateness.clear()
    assert lateness.summary()["events"] == 0
