"""Every event that the server sends is one of the API's, by the official package's own types."""

import asyncio
import json
from typing import Any

from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

_API: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)


async def _checked(peer: Any, kind: str) -> list[str]:
    """Events up to one of a kind, each of which the official types take as it is."""
    kinds = []
    while not kinds or kinds[-1] != kind:
        frame = await asyncio.wait_for(peer.socket.receive(), 5)
        event = _API.validate_json(frame.data, strict=True)
        assert event.model_extra in (None, {}), event
        kinds.append(json.loads(frame.data)["type"])
        assert event.type == kinds[-1]
    return kinds


async def test_all_events_have_the_shapes_of_the_api(connected: Any) -> None:
    seen: set[str] = set()
    async with connected() as peer:
        session = {"type": "realtime", "instructions": "Be brief."}
        await peer.send("session.update", session=session)
        seen.update(await _checked(peer, "session.updated"))
        await peer.item("Why?", "a")
        await peer.item("Rules.", "s", role="system")
        await peer.item("Because.", "b", role="assistant")
        await peer.ask(max_output_tokens=2, metadata={"kind": "test"})
        seen.update(await _checked(peer, "response.done"))
        await peer.ask(conversation="none")
        seen.update(await _checked(peer, "response.done"))
        await peer.send("response.cancel")
        seen.update(await _checked(peer, "error"))
        await peer.send("conversation.item.retrieve", item_id="b")
        await peer.send("conversation.item.delete", item_id="b")
        seen.update(await _checked(peer, "conversation.item.deleted"))
        await peer.ask(max_output_tokens=10_000)
        await peer.send("response.cancel")
        seen.update(await _checked(peer, "response.done"))
    assert seen == {
        "session.updated",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.deleted",
        "conversation.item.retrieved",
        "error",
        "rate_limits.updated",
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    }
