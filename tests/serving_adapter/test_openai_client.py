"""The official openai client completes a text session against our server, unchanged."""

from openai import AsyncOpenAI

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer

FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)


async def talk(url: str, model: str, *, api_key: str = "none") -> tuple[str, str]:
    """One text session; its deltas joined, and the text of ``response.done``."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=api_key)
    deltas = []
    async with client, client.realtime.connect(model=model) as connection:
        await connection.session.update(
            session={
                "type": "realtime",
                "instructions": "Answer in one word.",
                "output_modalities": ["text"],
            }
        )
        for text in ("Paris is the capital of France.\n", "What is the capital of France?"):
            await connection.conversation.item.create(
                item={
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": text}],
                }
            )
        await connection.response.create(response={"max_output_tokens": 8})
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if event.type == "response.done":
                break
    item = event.response.output[0]
    assert item.type == "message"
    assert event.response.usage is not None
    assert event.response.usage.output_tokens == 8
    return "".join(deltas), item.content[0].text or ""


async def test_the_official_client_completes_a_text_session() -> None:
    async with MockServer(MockEngine(FAST)) as server:
        deltas, whole = await talk(server.url, "mock")
    assert deltas == whole != ""
