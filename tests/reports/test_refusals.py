"""Answers that decline, and answers that only look like it."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from s2l.replayer.run import Run
from s2l.reports.refusals import is_refusal, refusals
from s2l.reports.summary import summarize


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I don\u2019t know.",
        "i dont know",
        '"I don\'t know."',
        "Answer: I do not know.",
        "**I don't know**",
        "Sorry, I cannot answer this question.",
        "I'm sorry, but I can't find that in the documents.",
        "Unfortunately, I am unable to answer.",
        "I'm not sure.",
        "There is not enough information to say.",
        "The context does not say which module it is.",
        "The provided documents do not mention it.",
        "Unfortunately, the given text doesn't contain the answer.",
        "The answer is not in the context.",
        "Not in the context.",
        "It is not mentioned in the provided context.",
        "Unknown.",
        "N/A",
        "We cannot determine this.",
        "no idea",
    ],
)
def test_refusals(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "functools",
        "It is functools. I don't know more than that.",
        "The function raises an error when the key is not known.",
        "Unknown Pleasures",
        "I know: functools.",
        "The Doors",
        "An unknown key gives KeyError",
        "not",
        "The context manager does not swallow the exception.",
        "Don Quixote",
        "The information age",
        "I cannot stress enough that it is functools.",
    ],
)
def test_answers(answer: str) -> None:
    assert not is_refusal(answer)


def test_share_is_of_successes_with_a_text(
    synthetic: ModuleType, make_run: Callable[..., Run]
) -> None:
    rows = (
        synthetic.request(),
        synthetic.request(output_text="I don't know."),
        synthetic.request(output_text=""),
        synthetic.failed("timeout", output_text="I don't know."),
    )
    np.testing.assert_array_equal(refusals(synthetic.request_table(*rows)), [0.0, 1.0, np.nan, 1.0])
    [stream] = summarize(make_run(*rows)).deliveries
    assert stream.quality.refused == 0.5


def test_without_a_text_there_is_no_share(
    synthetic: ModuleType, make_run: Callable[..., Run]
) -> None:
    [stream] = summarize(make_run(synthetic.request(output_text=""))).deliveries
    assert stream.quality.refused is None
