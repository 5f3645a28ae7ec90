"""What all requests of one mock server share."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.mock.faults import FaultPlan
from s2l.serving_adapter.mock.kv_cache import KvCache
from s2l.serving_adapter.mock.lateness import Lateness
from s2l.serving_adapter.mock.openai_format import CHAT, COMPLETION, AnswerFormat
from s2l.serving_adapter.mock.request_log import RequestLog
from s2l.serving_adapter.mock.scheduler import Scheduler
from s2l.serving_adapter.precise_timer import PreciseTimer


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the OpenAI side behaves. Answers are ``output_tokens`` long where a request does not say;
    an event carries ``tokens_per_event``, and comes as often as that many tokens take."""

    max_concurrency: int = 100_000
    prefix_cache: bool = True
    tokens_per_event: int = 1
    output_tokens: int = 16
    seed: int = 0
    faults: FaultPlan = field(default_factory=FaultPlan)
    log_path: Path | None = None


@dataclass(slots=True)
class Backend:
    """The model that all requests of the OpenAI side share, and its clock."""

    engine: MockEngine
    options: HttpOptions
    timer: PreciseTimer
    scheduler: Scheduler = field(init=False)
    log: RequestLog = field(init=False)
    lateness: Lateness = field(default_factory=Lateness)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    created_s: int = field(default_factory=lambda: int(time.time()))
    step_ns: int = field(init=False)
    formats: dict[str, AnswerFormat] = field(init=False)

    def __post_init__(self) -> None:
        engine, options = self.engine, self.options
        cache = KvCache(
            engine.info.kv_capacity,
            block_size=engine.info.block_size,
            reuse=options.prefix_cache,
        )
        self.scheduler = Scheduler(engine.latencies, cache, options.max_concurrency, options.seed)
        self.log = RequestLog(options.log_path)
        self.step_ns = round(engine.latencies.tpot_s * options.tokens_per_event * 1e9)
        self.formats = {
            name: AnswerFormat(kind, engine.info.model, options.tokens_per_event)
            for name, kind in (("completion", COMPLETION), ("chat", CHAT))
        }
