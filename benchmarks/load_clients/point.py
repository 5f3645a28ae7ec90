"""What a client is asked to do at one rate, and when its requests are due."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from s2l.workloads.arrival_process import arrival_process
from s2l.workloads.arrivals.base import OffsetsUs

TOKENS = 32
SEED = 0

Arrivals = Literal["constant", "poisson"]


@dataclass(frozen=True)
class Point:
    """``folder`` is where a client may write."""

    url: str
    arrivals: Arrivals
    rate_qps: float
    requests: int
    prompt_tokens: int
    tokenizer: Path
    folder: Path

    def due_us(self) -> OffsetsUs:
        """When each request is due: a schedule that this project's replayer makes, too."""
        return arrival_process(self.arrivals)(self.requests, self.rate_qps, SEED, ())

    @property
    def trace(self) -> Path:
        """Where ``write_trace`` writes."""
        return self.folder / "trace.jsonl"

    def write_trace(self, *, hash_ids: bool = False) -> None:
        """The schedule in the fields of Mooncake's traces, with milliseconds, a line a request.
        A request's one hash id, where asked for, stands for its whole prompt."""
        with self.trace.open("w") as file:
            for number, due_us in enumerate(self.due_us().tolist()):
                lengths = {"input_length": self.prompt_tokens, "output_length": TOKENS}
                hashes = {"hash_ids": [number]} if hash_ids else {}
                file.write(json.dumps({"timestamp": due_us / 1e3} | lengths | hashes) + "\n")
