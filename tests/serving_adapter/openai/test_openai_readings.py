"""Every form an answer comes in has one right reading."""

import asyncio
import json

import pytest
from scripted_server import (
    DONE,
    LAST,
    SSE_HEAD,
    event,
    http_chunk,
    json_answer,
    read,
    status_answer,
    stream,
    text_event,
    usage_event,
)


async def test_text_events_usage_and_the_end_marker() -> None:
    counts = {
        "prompt_tokens": 50,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 32},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    heard = await read(
        *stream(text_event("He"), text_event("ron", "stop"), usage_event(**counts), DONE)
    )
    assert heard.calls == [
        ("sent", 0),
        ("asked",),
        ("text", "He", None),
        ("text", "ron", None),
        ("finished", "stop"),
    ]
    assert heard.usage is not None
    assert (heard.usage.prompt_tokens, heard.usage.cached_tokens) == (50, 32)
    assert (heard.usage.output_tokens, heard.usage.reasoning_tokens) == (2, 0)
    assert (heard.usage.invalidated_tokens, heard.usage.discarded_tokens) == (0, 0)


async def test_role_only_and_empty_deltas_are_nothing() -> None:
    role = event({"choices": [{"delta": {"role": "assistant"}}]})
    empty = event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    null = event({"choices": [{"delta": {"content": None}, "finish_reason": None}], "usage": None})
    heard = await read(*stream(role, empty, null, text_event("Yes", "stop"), DONE))
    assert heard.of("text", "reasoning") == [("text", "Yes", None)]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_is_told_from_the_answer(name: str) -> None:
    thought = event({"choices": [{"delta": {name: "Hm", "content": None}}]})
    heard = await read(*stream(thought, text_event("Yes", "stop"), DONE))
    assert heard.of("text", "reasoning") == [("reasoning", "Hm", None), ("text", "Yes", None)]


async def test_completions_say_text() -> None:
    heard = await read(*stream(event({"choices": [{"text": "Yes", "finish_reason": "stop"}]})))
    assert heard.of("text", "finished") == [("text", "Yes", None), ("finished", "stop")]


async def test_usage_beside_an_empty_text() -> None:
    last = event(
        {
            "choices": [{"delta": {"content": ""}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_cache_hit_tokens": 2},
            "timings": {"cache_n": 1},
        }
    )
    heard = await read(*stream(text_event("Yes"), last, DONE))
    assert heard.usage is not None
    assert heard.usage.output_tokens == 4
    assert heard.usage.cached_tokens == 2
    assert heard.of("text") == [("text", "Yes", None)]


async def test_counts_with_every_event_tell_the_tokens_in_each() -> None:
    counts = (1, 1, 4)  # the second event completes no character, the third has three tokens
    texts = ("He", "", "rons")
    events = [
        text_event(text, usage={"prompt_tokens": 9, "completion_tokens": n})
        for text, n in zip(texts, counts, strict=True)
    ]
    heard = await read(*stream(*events, text_event("", "stop"), DONE))
    assert heard.of("text") == [("text", "He", 1), ("text", "rons", 3)]


async def test_a_total_beside_the_last_text_is_not_that_texts_count() -> None:
    last = text_event("ron", "stop", usage={"prompt_tokens": 9, "completion_tokens": 7})
    heard = await read(*stream(text_event("He"), last, DONE))
    assert heard.of("text") == [("text", "He", None), ("text", "ron", None)]
    assert heard.usage is not None
    assert heard.usage.output_tokens == 7


async def test_several_events_in_one_packet_and_comments_between_them() -> None:
    body = b": ping\r\n\r\n" + text_event("a") + b":\n\n" + text_event("b", "stop") + DONE
    heard = await read(SSE_HEAD + http_chunk(body) + LAST)
    assert heard.text == "ab"
    assert heard.of("finished")


async def test_an_event_over_several_lines_with_other_fields() -> None:
    lines = b'event: message\nid: 7\nretry: 10\ndata: {"choices":\ndata:[{"text":"Yes",\n'
    lines += b'data: "finish_reason":"stop"}]}\n\n'
    heard = await read(*stream(lines, DONE))
    assert heard.text == "Yes"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "the GPU is gone", "code": 500}}, "the GPU is gone"),
        ({"error": {"message": "bad", "code": 400}}, "bad"),
        ({"error": "out of memory", "error_type": "generation"}, "out of memory"),
        ({"object": "error", "message": "died", "code": 400}, "died"),
    ],
)
async def test_an_error_after_tokens_is_the_servers_failure(body: object, expected: str) -> None:
    heard = await read(*stream(text_event("He"), event(body), DONE))
    assert heard.of("text", "failed", "finished") == [
        ("text", "He", None),
        ("failed", "server_error"),
    ]
    assert str(heard.error) == expected


async def test_an_error_line_is_an_error() -> None:
    line = b'error: {"code":500,"message":"context is full","type":"server_error"}\n\n'
    heard = await read(*stream(text_event("He"), line))
    assert str(heard.error) == "context is full"


@pytest.mark.parametrize(
    ("code", "error_type"),
    [(400, "rejected"), (429, "rate_limited"), (503, "server_error"), ("x", "server_error")],
)
async def test_an_error_body_with_status_200(code: object, error_type: str) -> None:
    heard = await read(json_answer({"error": {"message": "too long", "code": code}}))
    assert heard.of("failed") == [("failed", error_type)]
    assert str(heard.error) == "too long"


async def test_an_answer_in_one_piece() -> None:
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    usage = {"prompt_tokens": 4, "completion_tokens": 5}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    heard = await read(json_answer(body))
    assert heard.of("reasoning", "text", "finished") == [
        ("reasoning", "Hm.", 5),
        ("text", "Yes.", 0),
        ("finished", "stop"),
    ]


async def test_events_that_are_called_json_are_read_as_events() -> None:
    head = SSE_HEAD.replace(b"text/event-stream", b"application/json")
    heard = await read(head, http_chunk(text_event("Yes", "stop")), http_chunk(DONE), LAST)
    assert heard.text == "Yes"


async def test_an_end_without_an_end_marker_is_one_if_a_reason_was_given() -> None:
    heard = await read(*stream(text_event("Yes", "stop")))
    assert heard.of("finished") == [("finished", "stop")]
    heard = await read(*stream(text_event("Ye")))
    assert heard.of("failed") == [("failed", "disconnected")]
    assert str(heard.error) == "the answer ended without a finish reason and without [DONE]"


async def test_a_cut_after_the_reason_does_not_spoil_the_answer() -> None:
    heard = await read(*stream(text_event("Yes", "length"), end=b""), None)
    assert heard.of("finished") == [("finished", "length")]


async def test_a_body_that_ends_with_its_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    heard = await read(head, text_event("Yes", "stop"), b"data: [DONE]\n", None)
    assert heard.of("text", "finished") == [("text", "Yes", None), ("finished", "stop")]


async def test_the_answer_is_complete_at_its_end_marker() -> None:
    never = asyncio.Event()
    heard = await read(*stream(text_event("Yes", "stop"), DONE, end=b""), never)
    assert heard.of("finished") == [("finished", "stop")]


@pytest.mark.parametrize("reason", ["abort", "error"])
async def test_a_reason_that_says_failure_is_one(reason: str) -> None:
    heard = await read(*stream(text_event("Ye"), text_event("", reason), DONE))
    assert heard.of("failed") == [("failed", "server_error")]


async def test_what_is_no_completion_is_said_so() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    heard = await read(page)
    assert heard.of("failed") == [("failed", "protocol")]
    assert str(heard.error) == "neither events nor a completion: '<html>'"
    heard = await read(*stream(b"data: {oh\n\n"))
    assert heard.of("failed") == [("failed", "protocol")]
    heard = await read(SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
    assert heard.of("failed") == [("failed", "protocol")]
    assert str(heard.error) == "gzip coding, which was not asked for"
    heard = await read(b"SSH-2.0-OpenSSH\r\n")
    assert heard.of("failed") == [("failed", "protocol")]
    assert "not HTTP/1.1" in str(heard.error)


async def test_a_line_of_megabytes() -> None:
    text = "Ä" * 2**20
    body = text_event(text, "stop")
    pieces = [body[i : i + 1000] for i in range(0, len(body), 1000)]
    heard = await read(*stream(*pieces, DONE))
    assert heard.text == text


async def test_interim_responses_are_skipped() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"
    heard = await read(early, *stream(text_event("Yes", "stop"), DONE))
    assert heard.text == "Yes"


@pytest.mark.parametrize(
    ("status", "error_type"),
    [
        *((400, "rejected"), (401, "rejected"), (404, "rejected"), (429, "rate_limited")),
        *((500, "server_error"), (503, "server_error"), (307, "protocol")),
    ],
)
async def test_statuses_by_type(status: int, error_type: str) -> None:
    body = json.dumps({"error": {"message": "no  such\nthing"}}).encode()
    heard = await read(status_answer(status, "Location: http://x/", body=body))
    assert heard.of("failed") == [("failed", error_type)]
    assert str(heard.error) == (
        f"HTTP {status}: no such thing"
        if status != 307
        else "HTTP 307: redirected to http://x/; name that address"
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"object":"error","message":"m","code":400}', "m"),
        (b'{"error":"text"}', "text"),
        (b"<h1>Bad</h1>", "<h1>Bad</h1>"),
        (b"", "no reason given"),
        (b'{"a":1}', '{"a":1}'),
    ],
)
async def test_error_bodies_of_every_kind(body: bytes, text: str) -> None:
    heard = await read(status_answer(418, body=body))
    assert str(heard.error) == f"HTTP 418: {text}"
