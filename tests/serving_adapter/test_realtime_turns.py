"""Several turns in one session: history, settings changed on the way, responses beside it."""

from typing import Any

import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine

SLOW = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.02)


def _text(response: dict[str, Any]) -> str:
    text: str = response["output"][0]["content"][0]["text"]
    return text


def _user(text: str) -> dict[str, Any]:
    return _message("user", "input_text", text)


def _message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


async def test_the_next_turn_has_all_turns_before_it(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"instructions": "Be brief."})
        await peer.item("Page.\n", "a")
        await peer.item("Why?", "b")
        await peer.ask(max_output_tokens=3)
        first = _text(await peer.done())
        await peer.item("And then?", "c")
        await peer.ask(max_output_tokens=1)
        second = await peer.done()
        assert peer.prompts()[-1] == (
            "<system> Be brief.\n"
            f"<user> Page.\nWhy?\n<assistant> {first}\n<user> And then?\n<assistant>"
        )
        assert second["usage"]["input_tokens"] == second["usage"]["total_tokens"] - 1
        await peer.send("conversation.item.retrieve", item_id=second["output"][0]["id"])
        item = (await peer.last("conversation.item.retrieved"))["item"]
        assert (item["role"], item["content"]) == ("assistant", second["output"][0]["content"])


async def test_a_fresh_session_with_the_same_items_has_the_same_tokens(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=3)
        first = await peer.done()
        await peer.item("And?", "b")
        await peer.ask()
        grown = await peer.done()
        fresh = await peer.another()
        for text, role in (("Why?", "user"), (_text(first), "assistant"), ("And?", "user")):
            await fresh.item(text, role=role)
        await fresh.ask()
        made = await fresh.done()
        # The mock's answer is a digest of all token ids of its prompt.
        assert _text(made) == _text(grown)
        assert made["usage"]["input_tokens"] == grown["usage"]["input_tokens"]


async def test_between_turns_nothing_is_held_until_new_context_comes(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"s2l": {"report": True}})
        await peer.item("Why?", "a")
        await peer.ask()
        await peer.done()
        await peer.until_idle()
        await peer.send("conversation.item.delete", item_id="a")
        await peer.until("conversation.item.deleted")
        assert peer.admission.open_requests == 0
        await peer.item("More words to come.", "b")
        report = await peer.last("s2l.prefilled")
        assert report["item_ids"][-1] == "b"
        assert peer.admission.free_tokens < peer.capacity


async def test_items_that_come_during_an_answer_belong_to_the_next_turn(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.send("session.update", session={"s2l": {"report": True}})
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=4)
        await peer.until("response.output_text.delta")
        await peer.item("Then this.", "b")
        added = await peer.last("conversation.item.added")
        first = await peer.done()
        assert added["previous_item_id"] == first["output"][0]["id"]
        assert "b" in (await peer.last("s2l.prefilled"))["item_ids"]  # early, and without a request
        await peer.ask()
        await peer.done()
        assert peer.prompts()[0] == "<user> Why?\n<assistant>"
        assert peer.prompts()[-1].endswith(f"{_text(first)}\n<user> Then this.\n<assistant>")


async def test_system_and_assistant_items_are_turns_of_their_own(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Rules.", "s", role="system")
        await peer.item("Hi.", "u")
        await peer.item("Hello.", "a", role="assistant")
        await peer.item("Changed rules.", "t", role="system")
        await peer.item("Well?", "v")
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == (
            "<system> Rules.\n<user> Hi.\n<assistant> Hello.\n"
            "<system> Changed rules.\n<user> Well?\n<assistant>"
        )


async def test_an_item_can_be_put_into_an_earlier_turn(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("One. ", "a")
        await peer.item("Yes.", "b", role="assistant")
        await peer.item("Three.", "c")
        await peer.item("Two.", "d", previous_item_id="a")
        await peer.send("conversation.item.delete", item_id="c")
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == "<user> One. Two.\n<assistant> Yes.\n<assistant>"


async def test_new_instructions_rebuild_the_prompt(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"instructions": "Old."})
        await peer.item("Why?", "a")
        await peer.until("conversation.item.done")
        await peer.send("session.update", session={"instructions": "New."})
        assert (await peer.last("session.updated"))["session"]["instructions"] == "New."
        await peer.ask()
        await peer.done()
        await peer.item("And?", "b")
        await peer.send("session.update", session={"instructions": ""})
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1].startswith("<user> Why?\n<assistant> ")
        assert any(prompt == "<system> New.\n<user> Why?\n<assistant>" for prompt in peer.prompts())


async def test_instructions_of_a_response_are_for_it_alone(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"instructions": "Session."})
        await peer.item("Why?", "a")
        await peer.ask(instructions="Response.")
        await peer.done()
        assert peer.prompts()[-1] == "<system> Response.\n<user> Why?\n<assistant>"
        await peer.item("And?", "b")
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1].startswith("<system> Session.\n<user> Why?\n")


async def test_instructions_alone_can_be_answered(connected: Any) -> None:
    async with connected() as peer:
        await peer.ask(instructions="Greet.")
        await peer.done()
        assert peer.prompts() == ["<system> Greet.\n<assistant>"]


async def test_settings_of_a_response_come_back_with_it(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"max_output_tokens": 5})
        await peer.item("Why?", "a")
        await peer.send("response.create", response={"metadata": {"topic": "x"}})
        created = (await peer.last("response.created"))["response"]
        assert (created["max_output_tokens"], created["metadata"]) == (5, {"topic": "x"})
        done = await peer.done()
        assert (done["id"], done["metadata"]) == (created["id"], {"topic": "x"})
        assert done["usage"]["output_tokens"] == 5
        await peer.item("And?", "b")
        await peer.ask(max_output_tokens=2)
        assert (await peer.done())["usage"]["output_tokens"] == 2


@pytest.mark.parametrize(
    "metadata", [{str(i): "" for i in range(17)}, {"k" * 65: ""}, {"k": "v" * 513}, {"k": 1}, "x"]
)
async def test_metadata_has_the_bounds_of_the_api(connected: Any, metadata: Any) -> None:
    async with connected() as peer:
        await peer.item("Why?", "a")
        await peer.ask(metadata=metadata)
        problem = await peer.error()
        assert problem["code"] in ("invalid_value", "invalid_type")
        assert problem["param"].startswith("response.metadata")


async def test_temperature_reaches_the_engine(connected: Any, fast: Latencies) -> None:
    seen = []

    class Thermometer(MockEngine):
        async def run(self, request_id, chunks, cache_salt):  # type: ignore[no-untyped-def]
            async def watched():  # type: ignore[no-untyped-def]
                async for chunk in chunks:
                    if chunk.last:
                        seen.append(chunk.temperature)
                    yield chunk

            async for step in super().run(request_id, watched(), cache_salt):
                yield step

    async with connected(Thermometer(fast)) as peer:
        await peer.item("Why?", "a")
        for session, response in (({}, {}), ({"s2l": {"temperature": 0.5}}, {}), ({}, 1.5)):
            await peer.send("session.update", session=session)
            await peer.ask(**({"temperature": response} if response else {}))
            await peer.done()
    assert seen == [0.0, 0.5, 1.5]


async def test_only_one_response_writes_to_the_conversation(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=20)
        running = (await peer.last("response.created"))["response"]["id"]
        await peer.ask()
        problem = await peer.error()
        assert problem["code"] == "conversation_already_has_active_response"
        assert running in problem["message"]
        assert (await peer.done())["id"] == running


async def test_a_response_out_of_band_reads_the_context_and_adds_nothing(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Why?", "a")
        await peer.ask(conversation="none", metadata={"kind": "topic"})
        events = await peer.until("response.done")
        created = next(e for e in events if e["type"] == "response.created")
        assert created["response"]["conversation_id"] is None
        assert events[-1]["response"]["metadata"] == {"kind": "topic"}
        kinds = [e["type"] for e in events if e["type"].startswith("conversation.")]
        assert kinds == ["conversation.item.added", "conversation.item.done"]  # the user's
        await peer.ask()
        await peer.done()
        assert peer.prompts().count("<user> Why?\n<assistant>") == 2


async def test_responses_out_of_band_have_input_of_their_own(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"instructions": "Session."})
        await peer.item("Not this. ", "a")
        await peer.item("This. ", "b")
        source = [{"type": "item_reference", "id": "b"}, _user("Sum it up.")]
        await peer.ask(conversation="none", input=source, instructions="Own.")
        await peer.done()
        assert peer.prompts()[-1] == "<system> Own.\n<user> This. Sum it up.\n<assistant>"
        await peer.ask(conversation="none", input=[], instructions="Greet.")
        await peer.done()
        assert peer.prompts()[-1] == "<system> Greet.\n<assistant>"
        await peer.ask()
        await peer.done()
        # The conversation's own prompt was begun first.
        assert peer.prompts()[0] == "<system> Session.\n<user> Not this. This. \n<assistant>"


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "item_reference", "id": "nobody"}, "response.input[1].id"),
        ({"type": "item_reference"}, "response.input[1].id"),
        ({"type": "function_call"}, "response.input[1].type"),
        ({"type": "message", "role": "user"}, "response.input[1].content"),
    ],
)
async def test_bad_input_of_a_response_is_refused(
    connected: Any, item: dict[str, Any], param: str
) -> None:
    async with connected() as peer:
        await peer.ask(conversation="none", input=[_user("Hi."), item])
        assert (await peer.error())["param"] == param
        assert peer.admission.open_requests == 0


async def test_input_of_its_own_with_an_answer_in_the_conversation(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Hidden.", "a")
        await peer.ask(input=[_user("Seen.")])
        first = _text(await peer.done())
        assert peer.prompts()[-1] == "<user> Seen.\n<assistant>"
        await peer.item("Next.", "b")
        await peer.ask()
        await peer.done()
        expected = f"<user> Hidden.\n<assistant> {first}\n<user> Next.\n<assistant>"
        assert expected in peer.prompts()


async def test_responses_out_of_band_run_beside_the_conversation(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=500)
        own = (await peer.last("response.created"))["response"]["id"]
        ids = []
        for number in range(3):
            await peer.ask(conversation="none", input=[_user(f"{number}?")], max_output_tokens=4)
            ids.append((await peer.last("response.created"))["response"]["id"])
        done = [await peer.done() for _ in range(3)]
        assert {response["id"] for response in done} == set(ids)
        await peer.send("response.cancel")
        last = await peer.done()
        assert (last["id"], last["status"]) == (own, "cancelled")


async def test_cancel_ends_the_response_that_it_names(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.ask(conversation="none", input=[_user("Why?")], max_output_tokens=500)
        beside = (await peer.last("response.created"))["response"]["id"]
        await peer.send("response.cancel")  # the conversation has none
        assert (await peer.error())["code"] == "response_cancel_not_active"
        await peer.send("response.cancel", response_id="resp_other")
        assert (await peer.error())["code"] == "response_cancel_not_active"
        await peer.send("response.cancel", response_id=beside)
        done = await peer.done()
        assert (done["id"], done["status"]) == (beside, "cancelled")
        await peer.send("response.cancel", response_id=beside)
        assert (await peer.error())["code"] == "response_cancel_not_active"


async def test_what_was_said_before_a_cancel_stays(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=500)
        await peer.until("response.output_text.delta")
        await peer.send("response.cancel")
        cancelled = await peer.done()
        assert cancelled["output"][0]["status"] == "incomplete"
        await peer.item("Go on.", "b")
        await peer.ask()
        await peer.done()
        said = _text(cancelled)
        assert said
        assert peer.prompts()[-1].endswith(f"<assistant> {said}\n<user> Go on.\n<assistant>")


async def test_an_answer_that_said_nothing_is_no_turn(connected: Any) -> None:
    async with connected(MockEngine(Latencies(overhead_s=0.2))) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=5)
        await peer.until("response.created")
        await peer.send("response.cancel")
        await peer.done()
        await peer.item(" Say it.", "b")
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == "<user> Why? Say it.\n<assistant>"


async def test_an_answer_can_be_deleted_even_while_it_is_made(connected: Any) -> None:
    async with connected(MockEngine(SLOW)) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=5)
        item = (await peer.last("response.output_item.added"))["item"]
        await peer.send("conversation.item.delete", item_id=item["id"])
        await peer.until("conversation.item.deleted")
        await peer.done()
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == "<user> Why?\n<assistant>"


async def test_rate_limits_say_what_is_left(connected: Any) -> None:
    async with connected(MockEngine(SLOW, kv_capacity=1600)) as peer:
        await peer.item("Why?", "a")
        await peer.ask(max_output_tokens=2)
        requests, tokens = (await peer.last("rate_limits.updated"))["rate_limits"]
        assert (requests["name"], requests["limit"], requests["remaining"]) == ("requests", 16, 15)
        assert (tokens["name"], tokens["limit"]) == ("tokens", 1600)
        assert 0 <= tokens["remaining"] <= 1600


async def test_a_template_without_a_place_for_a_turn_refuses_it(
    connected: Any, fast: Latencies
) -> None:
    class Strict(MockEngine):
        def render(self, messages):  # type: ignore[no-untyped-def]
            if any(message.role == "system" for message in messages[1:]):
                raise ValueError("system comes first")
            return super().render(messages)

    async with connected(Strict(fast)) as peer:
        await peer.item("Hi.", "a")
        await peer.item("Rules.", "b", role="system")
        problem = await peer.error()
        assert (problem["code"], problem["param"]) == ("invalid_value", "item.role")
        assert "system comes first" in problem["message"]
        await peer.item("Rules.", "b", role="system", previous_item_id="root")
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == "<system> Rules.\n<user> Hi.\n<assistant>"


async def test_extensions_that_an_update_does_not_name_stay(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"s2l": {"report": True, "cache_salt": "one"}})
        await peer.send("session.update", session={"s2l": {"temperature": 0.5}})
        await peer.item("More words to come.", "a")
        assert (await peer.last("s2l.prefilled"))["item_ids"] == ["a"]
        await peer.send("session.update", session={"s2l": {"cache_salt": "one"}})
        assert (await peer.next())["type"] == "session.updated"
        await peer.send("session.update", session={"s2l": {"cache_salts": "one"}})
        problem = await peer.error()
        assert (problem["code"], problem["param"]) == (
            "unknown_parameter",
            "session.s2l.cache_salts",
        )


async def test_the_salt_cannot_change_under_a_prompt(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"s2l": {"cache_salt": "one"}})
        await peer.item("Why?", "a")
        await peer.send("session.update", session={"s2l": {"cache_salt": "two"}})
        assert (await peer.error())["param"] == "session.s2l.cache_salt"
        await peer.ask()
        await peer.done()
        await peer.send("session.update", session={"s2l": {"cache_salt": "two"}})
        assert (await peer.next())["type"] == "session.updated"
