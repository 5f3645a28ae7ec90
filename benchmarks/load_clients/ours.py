"""``s2l``'s replayer as one of the clients: one pass of a trace, all checks on.

``python ours.py URL ADAPTER ARRIVALS RATE REQUESTS MAX_TOKENS TRACE RUN``
"""

import sys
from pathlib import Path

from s2l.replayer.experiment import Experiment
from s2l.replayer.options import ReplayOptions
from s2l.serving_adapter.base import ServingAdapter
from s2l.serving_adapter.event_loop import run
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.serving_adapter.realtime.client import RealtimeAdapter
from s2l.workloads.trace import Trace


async def replay(
    url: str,
    name: str,
    arrivals: str,
    rate_qps: float,
    requests: int,
    max_tokens: int,
    trace: Path,
    out: Path,
) -> None:
    """Replay so many requests."""
    adapter: ServingAdapter
    adapter = OpenAiAdapter(url, api="completions") if name == "openai" else RealtimeAdapter(url)
    options = ReplayOptions(
        rate_qps=rate_qps,
        arrivals=arrivals,
        delivery="wait" if name == "openai" else "stream",
        n_queries=requests,
        max_tokens=max_tokens,
        timeout_s=60.0,
    )
    async with adapter:
        experiment = Experiment(Trace.open(trace), adapter, options, url=url)
        await experiment.run(out)


def main() -> None:
    """Run what the arguments say."""
    url, name, arrivals, rate_qps, requests, max_tokens, trace, out = sys.argv[1:]
    numbers = (float(rate_qps), int(requests), int(max_tokens))
    run(replay(url, name, arrivals, *numbers, Path(trace), Path(out)))


if __name__ == "__main__":
    main()
