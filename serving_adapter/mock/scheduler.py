"""Which requests run, and when exactly each token is due: arithmetic, without a clock."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from s2l.serving_adapter.mock.draw import JITTER, uniform
from s2l.serving_adapter.mock.kv_cache import Holding, KvCache
from s2l.serving_adapter.mock.latencies import Latencies


@dataclass(slots=True, eq=False)
class Job:
    """One request as the model sees it; ``decode_ns`` is from its first token to its last. Times
    are nanoseconds of one monotonic clock; they are known once it runs, and ``on_start`` is called
    then."""

    number: int
    prompt_tokens: int
    output_tokens: int
    decode_ns: int
    keys: Sequence[int]
    on_start: Callable[[], None]
    start_ns: int = 0
    first_ns: int = 0
    last_ns: int = 0
    cached_tokens: int = 0
    holding: Holding | None = None


@dataclass(slots=True)
class Totals:
    """What ``/metrics`` counts since the start, in tokens."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0


@dataclass(slots=True, eq=False)
class Scheduler:
    """Runs at most ``max_concurrency`` requests, as many as the KV cache has room for, first come
    first served; each as fast as if it were alone."""

    latencies: Latencies
    cache: KvCache
    max_concurrency: int
    seed: int = 0
    running: int = 0
    waiting: deque[Job] = field(default_factory=deque)
    totals: Totals = field(default_factory=Totals)

    def fits(self, tokens: int) -> bool:
        """Whether a request of that many tokens can ever run."""
        return self.cache.blocks(tokens) <= self.cache.total_blocks

    def submit(self, job: Job, now_ns: int) -> None:
        """A request has arrived: it starts now or waits."""
        self.waiting.append(job)
        if len(self.waiting) == 1:
            self._start_waiting(now_ns)

    def prefilled(self, job: Job) -> None:
        """The first token is due: the whole prompt is computed."""
        if job.holding is not None:
            self.cache.prefilled(job.holding, job.prompt_tokens)

    def finish(self, job: Job, now_ns: int) -> None:
        """The request is over at that time; others may start at that very time."""
        assert job.holding is not None
        self.cache.release(job.holding)
        job.holding = None
        self.running -= 1
        self._start_waiting(now_ns)

    def abort(self, job: Job, now_ns: int) -> None:
        """The client is gone. What was prefilled by now can be found by others."""
        if job.holding is None:
            if job in self.waiting:
                self.waiting.remove(job)
                self._start_waiting(now_ns)
            return
        if now_ns < job.first_ns:
            done = self.latencies.prefilled_after(now_ns - job.start_ns)
            self.cache.prefilled(job.holding, min(job.prompt_tokens, job.cached_tokens + done))
        self.finish(job, now_ns)

    def _start_waiting(self, now_ns: int) -> None:
        waiting = self.waiting
        while waiting and self.running < self.max_concurrency:
            job = waiting[0]
            total = job.prompt_tokens + job.output_tokens
            holding = self.cache.hold(job.keys, job.prompt_tokens, total)
            if holding is None:
                return
            waiting.popleft()
            self.running += 1
            self._start(job, holding, now_ns)

    def _start(self, job: Job, holding: Holding, now_ns: int) -> None:
        job.holding = holding
        job.cached_tokens = holding.cached_blocks * self.cache.block_size
        left = job.prompt_tokens - job.cached_tokens
        jitter = uniform(self.seed, JITTER, job.number) if self.latencies.ttft_jitter_s else 0.0
        job.start_ns = now_ns
        job.first_ns = now_ns + self.latencies.ttft_ns(left, jitter)
        job.last_ns = job.first_ns + job.decode_ns
        self.totals.prompt_tokens += job.prompt_tokens
        self.totals.prefix_queries += job.prompt_tokens if self.cache.reuse else 0
        self.totals.prefix_hits += job.cached_tokens
        job.on_start, on_start = _nothing, job.on_start  # no cycle for the collector to find
        on_start()


def _nothing() -> None:
    pass
