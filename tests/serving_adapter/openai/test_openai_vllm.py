"""The adapter against stock vLLM's own chat and completions endpoints."""

from typing import Any

import pytest
from real_peer import APPENDED, PAGES, REPLACED, streamed, waited, with_pages
from scripted_server import chunk, probed

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.adapter import OpenAiAdapter

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_streaming_warms_the_prefix_cache_and_changes_no_answer(vllm: Any, api: str) -> None:
    async with probed(vllm.url, api_key=vllm.api_key, api=api) as adapter:
        first = await waited(adapter, APPENDED, f"{api}-wait")
        second = await streamed(adapter, APPENDED, f"{api}-stream")
    assert first.text == second.text != ""
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage.prompt_tokens == second.usage.prompt_tokens
    assert first.usage.cached_tokens == 0
    # All but the question, the end of the template and less than two blocks of 32 tokens.
    prompt_tokens = second.usage.prompt_tokens or 0
    assert prompt_tokens - 32 - 64 < (second.usage.cached_tokens or 0) < prompt_tokens
    assert (first.usage.discarded_tokens, second.usage.discarded_tokens) == (0, 3)
    assert (first.usage.invalidated_tokens, second.usage.invalidated_tokens) == (0, 0)
    counted = [call[2] for call in second.of("text")]
    # The end of the answer is a token too, and no text.
    assert 0 <= (second.usage.output_tokens or 0) - sum(counted) <= 1


async def test_replaced_context_keeps_the_common_prefix(vllm: Any) -> None:
    async with probed(vllm.url, api_key=vllm.api_key) as adapter:
        heard = await streamed(adapter, REPLACED, "replaced")
        (page,) = await adapter.count_tokens([PAGES[2]])
    assert heard.usage is not None
    # The third page was prefilled where the second stands now.
    assert abs((heard.usage.invalidated_tokens or 0) - page) <= 8
    assert (heard.usage.cached_tokens or 0) >= 32


async def test_a_salt_keeps_caches_apart_and_is_shared_by_its_own(vllm: Any) -> None:
    async with probed(vllm.url, api_key=vllm.api_key) as adapter:
        cached = [(await waited(adapter, APPENDED, salt)).usage for salt in ("one", "one", "two")]
    first, again, other = (usage.cached_tokens or 0 if usage else 0 for usage in cached)
    assert (first, other) == (0, 0)
    assert again > 100


async def test_the_server_is_recognised_and_counts(vllm: Any) -> None:
    async with OpenAiAdapter(f"{vllm.url}/v1", api_key=vllm.api_key) as adapter:
        found = await adapter.probe()
        assert (found.server, found.model, found.max_model_len) == ("vllm", vllm.model, 2048)
        assert found.version
        assert found.settings["api"] == "chat"
        assert found.settings["caches_kept_apart_by"] == "cache_salt"
        (count,) = await adapter.count_tokens([PAGES[0]])
        (cut,) = await adapter.truncate([PAGES[0]], [10])
        assert 10 < count < len(PAGES[0])
        assert PAGES[0].startswith(cut)
        assert await adapter.count_tokens([cut]) == [10]
    async with OpenAiAdapter(vllm.url, api_key="wrong") as adapter:
        with pytest.raises(ServingError, match="HTTP 401") as caught:
            await adapter.probe()
    assert caught.value.error_type == "rejected"


async def test_what_does_not_fit_the_model_is_refused(vllm: Any) -> None:
    async with probed(vllm.url, api_key=vllm.api_key) as adapter:
        heard = await waited(adapter, with_pages(chunk("word " * 3000)), "long")
    assert heard.of("failed") == [("failed", "rejected")]
    assert "2048" in str(heard.error)
