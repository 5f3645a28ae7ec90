"""An engine that computes nothing and takes exactly as long as it is told to."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from s2l.serving_adapter.realtime.engine import Chunk, EngineInfo, Step, TextDecoder

_PIECE = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long the mock takes: a chunk of n tokens ``overhead_s + n / prefill_tokens_per_s``, and
    ``tpot_s`` for each token after the first."""

    prefill_tokens_per_s: float = 10_000.0
    overhead_s: float = 0.01
    tpot_s: float = 0.01

    def prefill_s(self, tokens: int) -> float:
        """Seconds until the first token after a chunk of that many tokens."""
        return self.overhead_s + tokens / self.prefill_tokens_per_s


class Vocabulary:
    """Words and their ids, numbered as they are met: a tokenizer that needs no model."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []

    def encode(self, text: str) -> list[int]:
        """Ids of the words, white space with the word after it."""
        return [self._id(word) for word in _PIECE.findall(text)]

    def decode(self, token_ids: Sequence[int]) -> str:
        """The words of known ids, joined."""
        return "".join(self._words[i] for i in token_ids)

    def _id(self, word: str) -> int:
        if word not in self._ids:
            self._ids[word] = len(self._words)
            self._words.append(word)
        return self._ids[word]


class MockEngine:
    """Answers with words that follow from the whole prompt, so that equal prompts can be told.

    ``runs`` lists, by request, the token ids of each chunk: what a real engine would hold.
    """

    def __init__(
        self,
        latencies: Latencies | None = None,
        *,
        max_model_len: int = 32_768,
        kv_capacity: int = 1_000_000,
        max_sessions: int = 4096,
    ) -> None:
        self.latencies = latencies or Latencies()
        self.vocabulary = Vocabulary()
        self.runs: dict[str, list[tuple[int, ...]]] = {}
        self.open_runs = 0
        self.info = EngineInfo(
            engine="s2l-mock",
            version="1",
            model="mock",
            max_model_len=max_model_len,
            kv_capacity=kv_capacity,
            block_size=16,
            max_sessions=max_sessions,
            settings={
                "prefill_tokens_per_s": self.latencies.prefill_tokens_per_s,
                "overhead_s": self.latencies.overhead_s,
                "tpot_s": self.latencies.tpot_s,
            },
        )

    async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
        """One token a word."""
        return self.vocabulary.encode(text)

    def render(self, instructions: str, user: str) -> str:
        """A template with both ends, as chat models have."""
        return f"<system> {instructions}\n<user> {user}\n<assistant>"

    def decoder(self) -> TextDecoder:
        """Decodes ids of the mock's own words."""
        return _Decoder(self.vocabulary)

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        """Sleep as long as the chunks would take, then say the answer."""
        held = self.runs.setdefault(request_id, [])
        self.open_runs += 1
        try:
            async for chunk in chunks:
                held.append(chunk.token_ids)
                await asyncio.sleep(self.latencies.prefill_s(len(chunk.token_ids)))
                if not chunk.last:
                    yield Step(tuple(self.vocabulary.encode(" dropped")), "length", 0)
                    continue
                async for step in self._generate(held, chunk.max_tokens):
                    yield step
        finally:
            self.open_runs -= 1

    async def _generate(self, held: list[tuple[int, ...]], max_tokens: int) -> AsyncIterator[Step]:
        digest = hashlib.sha256(self.vocabulary.decode(sum(held, ())).encode()).hexdigest()[:12]
        loop = asyncio.get_running_loop()
        first_s = loop.time()
        for i in range(max_tokens):
            await asyncio.sleep(first_s + i * self.latencies.tpot_s - loop.time())
            word = digest if i == 0 else f" word{i}"
            reason = "length" if i == max_tokens - 1 else None
            yield Step(tuple(self.vocabulary.encode(word)), reason, 0)


class _Decoder:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def push(self, token_ids: Sequence[int]) -> str:
        return self._vocabulary.decode(token_ids)
