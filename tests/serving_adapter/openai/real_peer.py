"""A question over three pages for real models, asked with and without streaming the pages."""

import asyncio

from scripted_server import Heard, chunk, send_all

from s2l.serving_adapter.base import ContextChunk, Prompt
from s2l.serving_adapter.openai.adapter import OpenAiAdapter

PAGES = (
    "The heron is a wading bird. It eats fish and frogs, and stands still for hours.\n" * 3,
    "The otter is a mammal of rivers. It eats fish, crabs and sometimes birds.\n" * 3,
    "The beaver builds dams of wood and mud. It eats bark, and stores branches.\n" * 3,
)
QUESTION = "Question: What do herons and otters both eat? Answer with a list and say why."

PROMPT = Prompt(
    "Answer the question based only on the provided context.\n", (), QUESTION, max_output_tokens=24
)


def with_pages(*chunks: ContextChunk) -> Prompt:
    return Prompt(PROMPT.instructions, chunks, QUESTION, PROMPT.max_output_tokens)


APPENDED = with_pages(*map(chunk, PAGES))
REPLACED = with_pages(chunk(PAGES[0], PAGES[2]), chunk(PAGES[0], PAGES[1], PAGES[2], replaces=True))


async def waited(adapter: OpenAiAdapter, prompt: Prompt, salt: str) -> Heard:
    heard = Heard()
    async with asyncio.timeout(120):
        send_all(adapter.prepare(prompt).start(heard, salt=salt), len(prompt.chunks))
        await heard.over.wait()
    return heard


async def streamed(adapter: OpenAiAdapter, prompt: Prompt, salt: str) -> Heard:
    """Each chunk once the one before is prefilled."""
    heard = Heard()
    session = adapter.prepare(prompt).start(heard, salt=salt)
    async with asyncio.timeout(120):
        for index in range(len(prompt.chunks)):
            session.send_chunk(index)
            while len(heard.of("prefilled")) <= index:
                await asyncio.sleep(0.005)
        session.ask()
        await heard.over.wait()
    return heard
