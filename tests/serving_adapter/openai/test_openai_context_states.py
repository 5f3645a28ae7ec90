"""What contexts have in common, in bytes."""

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from s2l.serving_adapter.base import ContextChunk, ContextDocument
from s2l.serving_adapter.openai.context_states import ContextStates

TEXT = st.text(alphabet="ab\u00e9", max_size=12)


def _states(*texts: str) -> ContextStates:
    chunks = [ContextChunk((ContextDocument("d", text),), replaces=True) for text in texts]
    return ContextStates(chunks)


@given(TEXT, TEXT, TEXT)
def test_the_common_beginning_of_two_texts(begin: str, one: str, other: str) -> None:
    states = _states(begin + one, begin + other)
    a, b = (b"".join(state) for state in states.states[1:])
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    assert states.shared(1, 2) == common
    assert states.is_prefix(1, 2) is b.startswith(a)


def test_documents_are_compared_as_wholes_first() -> None:
    chunks = (
        ContextChunk((ContextDocument("1", "one"),)),
        ContextChunk((ContextDocument("2", "two"),)),
        ContextChunk((ContextDocument("1", "one"), ContextDocument("3", "tea")), replaces=True),
    )
    states = ContextStates(chunks)
    assert states.is_prefix(1, 2)
    assert not states.is_prefix(2, 3)
    assert states.shared(2, 3) == len("one") + len("t")
