"""However a body is cut on its way, the same is read."""

import json

from hypothesis import given
from hypothesis import strategies as st

from s2l.serving_adapter.base import ServingError, Usage
from s2l.serving_adapter.openai import event_stream
from s2l.serving_adapter.openai.answer_reader import AnswerReader
from s2l.serving_adapter.openai.event_stream import EventStream

HEADERS = {b"content-type": b"text/event-stream; charset=utf-8"}


def _no_overflow() -> None:
    raise AssertionError("overflow")


def data_of(pieces: list[bytes]) -> list[bytes]:
    """The events of a body that comes in these pieces."""
    found: list[bytes] = []
    stream = EventStream(found.append, _no_overflow)
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    return found


def by_definition(body: bytes) -> list[bytes]:
    """The events of a body, read line by line as the standard has it."""
    text = body.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    *lines, _cut_off = text.split("\n")
    events, data = [], list[str]()
    for line in [*lines, ""]:
        name, _, value = line.partition(":")
        if name in ("data", "error"):
            data.append(value.removeprefix(" "))
        if not line and data:
            events.append("\n".join(data).encode())
            data = []
    return events


LINES = st.sampled_from(
    [
        *("data: {}", 'data: {"a":"Ä€😀"}', "data:x", "data", "data:", "data:  two", "data: a:b"),
        *("", "", "", ":", ": ping", "event: e", "id: 1", "error: {}", "datax: 1", " data: 1"),
    ]
)
BODIES = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"]))).map(
    lambda lines: "".join(line + end for line, end in lines)
)


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    """The body in pieces, some of them empty."""
    places = sorted(c % (len(body) + 1) for c in cuts)
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]


CUTS = st.lists(st.integers(0, 10_000), max_size=20)


@given(BODIES, CUTS, st.sampled_from(["", "\ufeff"]), st.sampled_from(["", "data: cut"]))
def test_any_cut_gives_the_standards_events(
    text: str, cuts: list[int], start: str, end: str
) -> None:
    body = (start + text + end).encode()
    assert data_of(cut(body, cuts)) == by_definition(body)
    assert data_of([body[i : i + 1] for i in range(len(body))]) == by_definition(body)


def calls_of(pieces: list[bytes]) -> list[tuple[object, ...]]:
    """What is told of an answer whose body comes in these pieces."""
    calls: list[tuple[object, ...]] = []

    def on_text(text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        calls.append((text, tokens, reasoning))

    def on_complete(usage: Usage, finish_reason: str) -> None:
        calls.append((usage, finish_reason))

    def on_error(error: ServingError) -> None:
        calls.append((error.error_type, str(error)))

    reader = AnswerReader(on_text, on_complete, on_error)
    feed = reader.on_head(200, HEADERS)
    for piece in pieces:
        feed(piece)
    reader.on_end()
    return calls


CHUNKS = st.sampled_from(
    [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"content": "Reiher 😀"}, "finish_reason": None}]},
        {"choices": [{"delta": {"content": "a\r\nb\n\n"}}], "usage": {"completion_tokens": 3}},
        {"choices": [{"delta": {"reasoning": "Hm"}}]},
        {"choices": [{"text": "x", "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}},
        {"error": {"message": "oh"}},
        {"choices": []},
    ]
)


@given(
    st.lists(CHUNKS, max_size=8),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    CUTS,
)
def test_any_cut_of_an_answer_gives_the_same_calls(
    chunks: list[object], done: bool, line_end: str, cuts: list[int]
) -> None:
    events = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ["[DONE]"] * done
    whole = [f"data: {event}{line_end}{line_end}".encode() for event in events]
    expected = calls_of(whole)
    assert calls_of(cut(b"".join(whole), cuts)) == expected
    one_by_one = [whole_event[i : i + 1] for whole_event in whole for i in range(len(whole_event))]
    assert calls_of(one_by_one) == expected
    assert [type(call[-1]) for call in expected[-1:]] == [str]


MUTATED = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.lists(CHUNKS, max_size=4), st.integers(0, 400), st.binary(max_size=4)).map(
        lambda t: _mutated(b"".join(b"data: %b\n\n" % json.dumps(c).encode() for c in t[0]), *t[1:])
    ),
    st.integers(1, 5000).map(lambda depth: b'data: {"error":' + b'{"error":[' * depth + b"\n\n"),
)


def _mutated(body: bytes, at: int, new: bytes) -> bytes:
    return body[:at] + new + body[at + len(new) :]


@given(
    MUTATED,
    CUTS,
    st.sampled_from([200, 204, 301, 404, 429, 500]),
    st.dictionaries(
        st.sampled_from([b"content-type", b"retry-after", b"retry-after-ms", b"location"]),
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from([b"text/event-stream", b"application/json", b"inf", b"nan", b"-1"]),
        ),
    ),
)
def test_whatever_comes_there_is_one_end(
    body: bytes, cuts: list[int], status: int, headers: dict[bytes, bytes]
) -> None:
    ends: list[object] = []
    reader = AnswerReader(
        lambda text, tokens, *, reasoning=False: None,
        lambda usage, reason: ends.append(reason),
        ends.append,
    )
    feed = reader.on_head(status, headers)
    for piece in cut(body, cuts):
        feed(piece)
    reader.on_end()
    assert len(ends) == 1


def test_an_event_without_end_is_given_up(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 1000)
    found: list[bytes] = []
    overflows: list[int] = []
    stream = EventStream(found.append, lambda: overflows.append(1))
    stream.feed(b"data: ")
    for _ in range(20):
        stream.feed(b"x" * 100)
    assert (found, bool(overflows)) == ([], True)
