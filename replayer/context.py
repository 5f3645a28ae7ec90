"""The context of one query as it changes: chunks of documents, cut to a budget, counted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from s2l.replayer.context_budget import fair_shares
from s2l.serving_adapter.base import ContextChunk, ContextDocument
from s2l.workloads.context import common_prefix

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """One change of the context, ``arrival_us`` after the query's start.

    ``doc_ids`` are added at the end, or are the whole context when it ``replaces``.
    """

    kind: str
    arrival_us: int
    doc_ids: tuple[str, ...]

    @property
    def replaces(self) -> bool:
        """Whether what was there before is dropped."""
        return self.kind == "replace"


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """All changes of a context, with the text of each document and its tokens where known."""

    chunks: tuple[ChunkPlan, ...]
    texts: Texts
    tokens: Mapping[str, int] | None = None

    def states(self) -> Iterator[tuple[str, ...]]:
        """The documents of the context after each chunk."""
        state: tuple[str, ...] = ()
        for chunk in self.chunks:
            state = chunk.doc_ids if chunk.replaces else state + chunk.doc_ids
            yield state

    def until(self, time_us: int) -> "ContextPlan":
        """Only what has arrived by then, since the query's start."""
        return replace(self, chunks=tuple(c for c in self.chunks if c.arrival_us <= time_us))

    def final(self) -> "ContextPlan":
        """Only the chunks that the final context is made of: from the last replacement on."""
        replacements = [i for i, chunk in enumerate(self.chunks) if chunk.replaces]
        first = replacements[-1] if replacements else 0
        return replace(self, chunks=self.chunks[first:])

    def sizes(self) -> Iterator[tuple[int | None, int | None, int | None]]:
        """For each chunk: tokens of its documents, of the context after it, and of those of the
        context before it that it kept in place. None where tokens are not known."""
        before: tuple[str, ...] = ()
        for chunk, state in zip(self.chunks, self.states(), strict=True):
            kept = common_prefix(before, state)
            yield self._count(chunk.doc_ids), self._count(state), self._count(state[:kept])
            before = state

    def largest(self) -> int | None:
        """Tokens of the largest context on the way; None where tokens are not known."""
        totals = [total for _, total, _ in self.sizes()]
        return None if self.tokens is None else max((t for t in totals if t), default=0)

    def wire(self) -> tuple[ContextChunk, ...]:
        """What is sent."""
        return tuple(
            ContextChunk(
                tuple(ContextDocument(doc, self.texts[doc]) for doc in chunk.doc_ids),
                chunk.replaces,
            )
            for chunk in self.chunks
        )

    def budgets(self, lengths: Mapping[str, int], context_tokens: int) -> dict[str, int]:
        """Tokens to keep of each document so that no context on the way exceeds the budget.

        A document has one length wherever it stands, or it could not be kept when others change.
        So where context is replaced, each has an equal share of the budget in the largest context.
        """
        if not self.chunks:
            return {}
        if not any(chunk.replaces for chunk in self.chunks):
            *_, final = self.states()
            shares = fair_shares([lengths[doc] for doc in final], context_tokens)
            return dict(zip(final, shares, strict=True))
        share = context_tokens // max(1, *(len(state) for state in self.states()))
        return {doc: min(share, lengths[doc]) for doc in self.texts}

    def _count(self, doc_ids: Sequence[str]) -> int | None:
        tokens = self.tokens
        return None if tokens is None else sum(tokens[doc] for doc in doc_ids)


def ordered(
    chunks: Sequence[ChunkPlan], order: Callable[[Sequence[str], Sequence[str]], list[str]]
) -> tuple[ChunkPlan, ...]:
    """The chunks with the documents of replacements placed by the order."""
    placed: list[ChunkPlan] = []
    state: tuple[str, ...] = ()
    for chunk in chunks:
        if chunk.replaces:
            chunk = replace(chunk, doc_ids=tuple(order(state, chunk.doc_ids)))
        state = chunk.doc_ids if chunk.replaces else state + chunk.doc_ids
        placed.append(chunk)
    return tuple(placed)
