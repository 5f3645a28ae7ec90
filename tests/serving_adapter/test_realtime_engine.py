"""Several turns, responses beside them, and metrics, inside stock vLLM."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

pytestmark = pytest.mark.engine

INSTRUCTIONS = "Answer in one short sentence."
FACTS = "The heron is a wading bird. It eats fish and frogs, and stands still for hours. " * 6
QUESTIONS = ("What does the heron eat?", "And what does it do for hours?")


class Talk:
    """One session with the real server."""

    def __init__(self, vllm: Any) -> None:
        self._http = aiohttp.ClientSession(
            vllm.url, headers={"Authorization": f"Bearer {vllm.api_key}"}
        )

    async def __aenter__(self) -> "Talk":
        self._socket = await self._http.ws_connect("/v1/realtime")
        await self.last("session.created")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._socket.close()
        await self._http.close()

    async def send(self, kind: str, **fields: Any) -> None:
        await self._socket.send_str(json.dumps({"type": kind, **fields}))

    async def setup(self, salt: str) -> None:
        own = {"cache_salt": salt, "report": True}
        session = {"type": "realtime", "instructions": INSTRUCTIONS, "s2l": own}
        await self.send("session.update", session=session)
        await self.last("session.updated")

    async def say(self, text: str, role: str = "user") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        await self.send("conversation.item.create", item=item)

    async def ask(self, **response: Any) -> dict[str, Any]:
        await self.send("response.create", response={"max_output_tokens": 24, **response})
        return await self.done()

    async def done(self) -> dict[str, Any]:
        response: dict[str, Any] = (await self.last("response.done"))["response"]
        return response

    async def last(self, kind: str) -> dict[str, Any]:
        while True:
            message = await asyncio.wait_for(self._socket.receive(), 60)
            event: dict[str, Any] = json.loads(message.data)
            assert event["type"] != "error", event
            if event["type"] == kind:
                return event


def _text(response: dict[str, Any]) -> str:
    text: str = response["output"][0]["content"][0]["text"]
    return text


async def _chat(vllm: Any, messages: list[dict[str, str]], salt: str) -> tuple[str, int]:
    """What the server's ordinary chat endpoint says, and the tokens of its prompt."""
    body = {"model": vllm.model, "messages": messages, "max_tokens": 24, "temperature": 0}
    headers = {"Authorization": f"Bearer {vllm.api_key}"}
    async with (
        aiohttp.ClientSession(vllm.url, headers=headers) as http,
        http.post("/v1/chat/completions", json=body | {"cache_salt": salt}) as response,
    ):
        answer = await response.json()
    return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]


async def test_each_turn_answers_as_the_chat_endpoint_does_to_all_turns(vllm: Any) -> None:
    messages = [{"role": "system", "content": INSTRUCTIONS}]
    async with Talk(vllm) as talk:
        await talk.setup("turns")
        for number, question in enumerate((FACTS + QUESTIONS[0], QUESTIONS[1])):
            await talk.say(question)
            response = await talk.ask()
            messages.append({"role": "user", "content": question})
            text, n_tokens = await _chat(vllm, messages, f"chat-{number}")
            assert _text(response) == text != ""
            assert response["usage"]["input_tokens"] == n_tokens
            messages.append({"role": "assistant", "content": text})
    # Of the second turn's prompt all of the first was there, but for less than a block of 32.
    cached = response["usage"]["input_token_details"]["cached_tokens"]
    assert cached > 0.7 * response["usage"]["input_tokens"]


async def test_a_fresh_session_with_the_same_items_says_the_same(vllm: Any) -> None:
    async with Talk(vllm) as talk, Talk(vllm) as fresh:
        await talk.setup("grown")
        await talk.say(FACTS + QUESTIONS[0])
        first = await talk.ask()
        await talk.say(QUESTIONS[1])
        second = await talk.ask()
        await fresh.setup("made")
        for text, role in ((FACTS + QUESTIONS[0], "user"), (_text(first), "assistant")):
            await fresh.say(text, role)
        await fresh.say(QUESTIONS[1])
        made = await fresh.ask()
    assert _text(made) == _text(second)
    assert made["usage"]["input_tokens"] == second["usage"]["input_tokens"]


async def test_a_response_beside_reads_the_context_while_it_is_answered(vllm: Any) -> None:
    async with Talk(vllm) as talk:
        await talk.setup("beside")
        await talk.say(FACTS + QUESTIONS[0])
        own = {"max_output_tokens": 200}
        await talk.send("response.create", response=own)
        first_id = (await talk.last("response.created"))["response"]["id"]
        beside = {"conversation": "none", "max_output_tokens": 4, "metadata": {"kind": "beside"}}
        await talk.send("response.create", response=beside)
        done = await talk.done()
        assert (done["metadata"], done["conversation_id"]) == ({"kind": "beside"}, None)
        await talk.send("response.cancel", response_id=first_id)
        assert (await talk.done())["status"] == "cancelled"


async def test_instructions_can_change_on_the_way(vllm: Any) -> None:
    async with Talk(vllm) as talk:
        await talk.setup("changed")
        await talk.say(FACTS)
        await talk.last("s2l.prefilled")
        changed = "You are a poet."
        await talk.send("session.update", session={"instructions": changed})
        await talk.say(QUESTIONS[0])
        response = await talk.ask(max_output_tokens=8)
    messages = [
        {"role": "system", "content": changed},
        {"role": "user", "content": FACTS + QUESTIONS[0]},
    ]
    text, _ = await _chat(vllm, messages, "chat-changed")
    assert text.startswith(_text(response))


async def test_the_official_client_has_a_conversation(vllm: Any) -> None:
    client = AsyncOpenAI(base_url=f"{vllm.url}/v1", api_key=vllm.api_key)
    answers = []
    async with client, client.realtime.connect(model=vllm.model) as connection:
        await connection.session.update(session={"type": "realtime", "instructions": INSTRUCTIONS})
        for question in (FACTS + QUESTIONS[0], QUESTIONS[1]):
            content = [{"type": "input_text", "text": question}]
            item = {"type": "message", "role": "user", "content": content}
            await connection.conversation.item.create(item=item)  # type: ignore[arg-type]
            await connection.response.create(response={"max_output_tokens": 24})
            async for event in connection:
                assert event.type != "error", event
                if event.type == "response.done":
                    answers.append(event.response)
                    break
    assert [answer.status in ("completed", "incomplete") for answer in answers] == [True, True]
    assert all(answer.usage and answer.usage.output_tokens for answer in answers)


async def test_metrics_are_where_those_of_vllm_are(vllm: Any) -> None:
    async with Talk(vllm) as talk, aiohttp.ClientSession(vllm.url) as http:
        await talk.setup("metrics")
        await talk.say(FACTS)
        await talk.last("s2l.prefilled")
        async with http.get("/metrics") as response:
            text = await response.text()
    values = {
        line.split()[0]: float(line.split()[1])
        for line in text.splitlines()
        if line.startswith("s2l_")
    }
    assert values['s2l_sessions{state="open"}'] >= 1
    assert values["s2l_chunks_total"] >= 1
    assert values["s2l_prefilled_tokens_total"] >= 100
    assert values["s2l_item_to_prefilled_seconds_count"] >= 1
    assert "vllm:kv_cache_usage_perc" in text


@pytest.mark.parametrize("key", [None, "wrong"])
async def test_the_socket_is_refused_before_it_is_accepted(vllm: Any, key: str | None) -> None:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(vllm.url, headers=headers) as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect("/v1/realtime")
    assert refused.value.status == 401
