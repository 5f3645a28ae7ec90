"""What is opened before a pass begins."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from s2l.replayer.open_files import files_left, raise_limit
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import plan_queries
from s2l.replayer.sender import LocalSenders
from s2l.serving_adapter.base import Prompt, ServerInfo, ServingAdapter
from s2l.workloads.trace import Trace


class Asked:
    """An adapter that only notes for how many requests it is to be ready."""

    name = "asked"

    def __init__(self) -> None:
        self.ready_for: list[int] = []

    async def ready(self, requests: int) -> None:
        self.ready_for.append(requests)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)

    def prepare(self, prompt: Prompt) -> Any:
        return prompt


async def ready_for(trace: Trace, answer_s: float, **options: Any) -> int:
    """For how many requests at once a pass is made ready, 10 a second, due after 0.4 s."""
    asked = Asked()
    adapter = cast(ServingAdapter, asked)
    chosen = ReplayOptions(10.0, arrivals="constant", n_queries=200, **options)
    plan = await plan_queries(trace, adapter, chosen, ServerInfo("mock", "1", "mock"))
    senders = LocalSenders(adapter, chosen)
    senders.answer_s = answer_s
    await senders.prepare(plan, "wait", None)
    (found,) = asked.ready_for
    return found


@pytest.mark.parametrize(
    ("answer_s", "options", "expected"),
    [
        (0.0, {}, 4),
        (0.4, {}, 10),  # 0.4 s until it is due, and one and a half times 0.4 s
        (1000.0, {}, 200),
        (0.4, {"max_concurrency": 7}, 7),
        (0.4, {"concurrency": 3}, 3),
    ],
)
async def test_connections_are_opened_for_what_is_likely_at_once(
    trace: Trace, answer_s: float, options: dict[str, Any], expected: int
) -> None:
    assert await ready_for(trace, answer_s, **options) == expected


async def test_but_not_more_than_files_may_be_open(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s2l.replayer.sender.files_left", lambda _: 6)
    assert await ready_for(trace, 0.4) == 6


def test_files_left_are_counted() -> None:
    limit = raise_limit()
    assert limit is not None
    left = files_left(limit)
    assert left is not None
    with open("/dev/null"):
        assert files_left(limit) == left - 1
    assert files_left(1) == 0
    assert files_left(None) is None
