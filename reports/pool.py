"""The documents of one query's context as they change: what stays and what is thrown away."""

from collections.abc import Iterator
from dataclasses import dataclass

from s2l.reports.life import Life, SentChunk
from s2l.reports.metrics import ratio
from s2l.workloads.context import common_prefix

Documents = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolUpdate:
    """The context after one update, ``time_s`` after the query's start.

    The first ``kept`` of its documents stand where they stood, with the same ones before them;
    ``thrown_away`` documents of the context before do not, be it only because of their place.
    ``reuse`` is None where the update does not replace, or nothing was there or is known.
    """

    time_s: float
    replaces: bool
    documents: Documents
    kept: int
    thrown_away: int
    reuse: float | None


@dataclass(frozen=True, slots=True)
class Stay:
    """A document at one place of the prompt (0 is the first), with the same ones before it.

    ``lasts`` when it is there at the end: otherwise what was prefilled of it was in vain.
    """

    document: str
    position: int
    start_s: float
    end_s: float
    lasts: bool


@dataclass(frozen=True, slots=True)
class Pool:
    """All updates of a query's context, due at ``due_s`` and answered from ``end_s`` on."""

    updates: tuple[PoolUpdate, ...]
    due_s: float
    end_s: float

    @classmethod
    def of(cls, life: Life) -> "Pool | None":
        """Follow the chunks; None where the run does not say which documents they hold."""
        updates: list[PoolUpdate] = []
        documents: Documents = ()
        tokens: int | None = None
        for chunk in life.chunks:
            if chunk.doc_ids is None:
                return None
            updates.append(_update(documents, tokens, chunk, chunk.doc_ids))
            documents, tokens = updates[-1].documents, chunk.context_tokens
        end_s = life.due_s if life.first_token_s is None else life.first_token_s
        return cls(tuple(updates), life.due_s, max(end_s, life.due_s))

    @property
    def changes(self) -> bool:
        """Whether anything that was there was replaced."""
        return any(update.thrown_away for update in self.updates)

    def numbers(self) -> dict[str, int]:
        """A number for each document, from 1 on, as they appeared."""
        seen = dict.fromkeys(doc for update in self.updates for doc in update.documents)
        return {doc: number for number, doc in enumerate(seen, start=1)}

    def stays(self) -> Iterator[Stay]:
        """Every stay, in the order in which they end."""
        since: list[float] = []
        before: Documents = ()
        for update in self.updates:
            for position in range(update.kept, len(before)):
                yield Stay(before[position], position, since[position], update.time_s, lasts=False)
            before = update.documents
            since[update.kept :] = [update.time_s] * (len(before) - update.kept)
        for position, (doc, start_s) in enumerate(zip(before, since, strict=True)):
            yield Stay(doc, position, start_s, self.end_s, lasts=True)


def _update(
    before: Documents, tokens_before: int | None, chunk: SentChunk, doc_ids: Documents
) -> PoolUpdate:
    documents = doc_ids if chunk.replaces else before + doc_ids
    kept = common_prefix(before, documents)
    return PoolUpdate(
        time_s=chunk.arrival_s,
        replaces=chunk.replaces,
        documents=documents,
        kept=kept,
        thrown_away=len(before) - kept,
        reuse=ratio(chunk.kept_tokens, tokens_before) if chunk.replaces else None,
    )
