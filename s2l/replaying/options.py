"""The options that ``s2l replay`` and ``s2l sweep`` share, by group."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from s2l.parameters import POSITIVE, SERVER_URL
from s2l.replayer.document_order import ORDERS
from s2l.replaying.parameters import ARRIVALS, BURSTINESS, DURATION
from s2l.replaying.target import AUTO
from s2l.serving_adapter.adapters import ADAPTERS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

_COUNT: Final = click.IntRange(1)

WORKLOAD: Final[tuple[Decorator, ...]] = (
    click.option(
        "--arrivals",
        type=ARRIVALS,
        default="poisson",
        show_default=True,
        help="When queries start: constant, poisson, gamma, recorded (the trace's own times; --qps "
        "scales them), file:PATH (delays), ramp:1..20/60s, step:5x30s,10x30s.",
    ),
    click.option(
        "--burstiness",
        type=BURSTINESS,
        default=1.0,
        show_default=True,
        help="Of gamma, ramp and step: 1 is Poisson, less is more bursty, inf is even.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Of the schedule, and of all that is drawn.",
    ),
    click.option("--time-scale", type=POSITIVE, default=1.0, help="Multiplies retrieval times."),
    click.option(
        "--max-concurrency", type=_COUNT, help="At most so many requests under way; others wait."
    ),
    click.option(
        "--max-tokens", type=_COUNT, default=32, show_default=True, help="Of an answer, at most."
    ),
    click.option(
        "--context-tokens",
        type=_COUNT,
        help="Cut each query's context to so many.  [default: 600 when embedded]",
    ),
    click.option(
        "--delivery",
        type=click.Choice(["stream", "wait", "both"]),
        default="both",
        show_default=True,
        help="Each piece of context when it arrives, all of it at the end, or both, one after the "
        "other.",
    ),
    click.option(
        "--order",
        type=click.Choice(sorted(ORDERS)),
        default="score",
        show_default=True,
        help="How documents stand in a context that is replaced: score: best first; reverse: best "
        "last; stable: those that were there keep their places.",
    ),
)
"""What is sent, and when."""

REQUESTS: Final[tuple[Decorator, ...]] = (
    click.option(
        "--warmup",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="Requests before anything is measured.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=DURATION,
        default=300.0,
        show_default=True,
        help="From when the context is due to the end of the answer.",
    ),
    click.option("--connect-timeout", "connect_timeout_s", type=DURATION, help="To connect."),
    click.option(
        "--first-token-timeout",
        "first_token_timeout_s",
        type=DURATION,
        help="From the question to the first token.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Of a request that was refused, put off (429) or cut off before its first token; "
        "every attempt is recorded.",
    ),
    click.option(
        "--cancel-fraction",
        type=click.FloatRange(0, 1),
        default=0.0,
        help="Share of requests whose client gives up at some moment.",
    ),
    click.option(
        "--connections",
        type=click.Choice(["reuse", "new"]),
        default="reuse",
        show_default=True,
        help="Over HTTP: kept, or a new one for each request.",
    ),
)
"""How long a request may take, and what is done when it fails."""

TARGET: Final[tuple[Decorator, ...]] = (
    click.option("--target", type=SERVER_URL, help="A running server.  [default: embedded]"),
    click.option(
        "--adapter",
        type=click.Choice([AUTO, *ADAPTERS]),
        default=AUTO,
        show_default=True,
        help="realtime: a Realtime server; openai: any OpenAI-compatible one.",
    ),
    click.option(
        "--api",
        type=click.Choice(["auto", "chat", "completions"]),
        default="auto",
        show_default=True,
        help="Which API of an OpenAI-compatible server answers.",
    ),
    click.option("--model", help="Of an OpenAI-compatible server; default: the first it lists."),
    click.option(
        "--tokenizer",
        type=click.Path(path_type=Path, exists=True),
        help="The model's folder with its tokenizer.json, where the server cannot count tokens.",
    ),
    click.option(
        "--server-metrics-interval",
        "server_metrics_interval_s",
        type=DURATION,
        default=1.0,
        show_default=True,
        help="Between looks at the server's /metrics.",
    ),
    click.option(
        "--calibrate/--no-calibrate",
        "calibrate",
        default=None,
        help="Measure this client's own error against a mock server first.  "
        "[default: on the first replay on a machine]",
    ),
)
"""The server, and how it is spoken to."""


def with_options(*groups: tuple[Decorator, ...]) -> Callable[[Command], Command]:
    """A decorator that gives a command these options, in this order."""
    options = [option for group in groups for option in group]

    def decorate(command: Command) -> Command:
        decorated: Command = reduce(lambda done, option: option(done), reversed(options), command)
        return decorated

    return decorate
