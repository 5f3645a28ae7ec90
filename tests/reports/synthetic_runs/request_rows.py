"""Rows of requests with round times, of which every column can be replaced."""

from typing import Any

import pyarrow as pa

from s2l.replayer.run import REQUEST_SCHEMA

QUESTIONS = [
    ("Which module implements an LRU cache decorator?", "functools"),
    ("What does the with statement call when a block ends?", "__exit__"),
    ("Which exception ends a generator?", "StopIteration"),
    ("In which module is defaultdict?", "collections"),
    ("What is the default recursion limit?", "1000"),
    ("Which function pairs items of two iterables?", "zip"),
    ("What does PEP 8 describe?", "the style of Python code"),
    ("Which method makes an object callable?", "__call__"),
    ("What does json.loads return for an object?", "a dict"),
    ("Which keyword binds a name of the enclosing scope?", "nonlocal"),
    ("What type does b'a'[0] have?", "int"),
    ("Which module has Path?", "pathlib"),
]


def request(**changes: Any) -> dict[str, Any]:
    """One succeeded request with round times; every column can be replaced."""
    row: dict[str, Any] = {
        "request_id": "stream-0",
        "query_id": "q0",
        "delivery": "stream",
        "rate": None,
        "start_intended_us": 0,
        "start_us": 0,
        "context_intended_us": 1_000_000,
        "context_us": 1_000_000,
        "first_token_us": 1_200_000,
        "last_token_us": 1_400_000,
        "end_us": 1_500_000,
        "token_us": [1_200_000, 1_300_000, 1_400_000],
        "token_n": [1, 1, 1],
        "prompt_tokens": 100,
        "cached_tokens": 80,
        "invalidated_tokens": 0,
        "output_tokens": 3,
        "token_source": "usage",
        "output_text": "functools",
        "finish_reason": "stop",
        "error_type": None,
        "error": None,
    }
    return row | changes


def failed(error_type: str, **changes: Any) -> dict[str, Any]:
    """A request that failed before its first token."""
    nothing = {"first_token_us": None, "last_token_us": None, "token_us": [], "token_n": []}
    tokens = dict.fromkeys(("prompt_tokens", "cached_tokens", "output_tokens", "token_source"))
    error = {"error_type": error_type, "error": f"no answer: {error_type}", "output_text": ""}
    return request(**nothing, **tokens, **error, finish_reason=None) | changes


def timed(query_id: str, delivery: str, start_us: int, ttft_s: float) -> dict[str, Any]:
    """A success whose context is due a second after its start, with this TTFT to the µs."""
    due = start_us + 1_000_000
    first = due + round(ttft_s * 1e6)
    times = [first, first + 20_000, first + 40_000]
    return request(
        request_id=f"{delivery}-{query_id}",
        query_id=query_id,
        delivery=delivery,
        start_intended_us=start_us,
        start_us=start_us + 100,
        context_intended_us=due,
        context_us=due + 200,
        first_token_us=first,
        last_token_us=times[-1],
        end_us=times[-1] + 100,
        token_us=times,
    )


def request_table(*rows: dict[str, Any]) -> pa.Table:
    """The rows as a table of ``REQUEST_SCHEMA``."""
    return pa.Table.from_pylist(list(rows), schema=REQUEST_SCHEMA)
