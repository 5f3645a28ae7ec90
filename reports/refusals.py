"""Answers that decline: "I don't know" and its kind.

The preamble of a replay tells the model to say "I don't know." where the context does not hold the
answer, so an answer that declines is neither right nor made up: it is counted on its own.
"""

import re
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from s2l.reports.metrics import Floats

_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u02bc": "'", "`": "'"})
_NOT: Final = (
    r"(?:do not|don't|dont|cannot|can't|can not|could not|couldn't|am unable to|am not able to)"
)
_TELL: Final = r"(?:know|answer|tell|say|determine|find|provide|help|confirm|verify|be sure)"
_SOURCE: Final = r"(?:context|text|passages?|documents?|information|sources?|material)"
_SILENT: Final = (
    r"(?:does not|doesn't|do not|don't|did not)"
    r" (?:say|state|mention|contain|provide|specify|include|give|answer|tell)"
)

_OPENINGS: Final = (
    rf"(?:i'm |i am )?(?:sorry|afraid|unfortunately)?[,.:; ]*(?:but |that )?(?:i|we) {_NOT}"
    rf" (?:really |actually )?{_TELL}\b",
    r"(?:i'm |i am )?(?:sorry|afraid|unfortunately)?[,.:; ]*(?:but )?(?:i'm|i am) (?:unable to"
    rf"|not able to) {_TELL}\b",
    r"(?:i'm |i am )(?:not sure|uncertain|unsure)\b",
    r"(?:i have|there is|there's) (?:no|not enough|insufficient) (?:information|answer|idea)\b",
    rf"(?:unfortunately[, ]*)?(?:the |this |that )?(?:provided |given )?{_SOURCE}"
    rf"(?: provided| given)? {_SILENT}\b",
    r"(?:(?:the|that|this|an) )?(?:answer|information) (?:is|was) not"
    r" (?:in|given|provided|stated|mentioned|available|contained)\b",
    r"(?:it is |it's )?not (?:(?:mentioned|stated|given) )?in the (?:provided |given )?"
    rf"{_SOURCE}\b",
    r"(?:answer )?(?:unknown|not known|no answer|n/a|not available)[.! ]*$",
    r"(?:don't|dont|do not) know\b",
    r"no idea\b",
)
_OPENING: Final = re.compile("|".join(_OPENINGS))
_LOOKED_AT: Final = 300
"""Characters of an answer, which hold its beginning."""
_LEAD: Final = re.compile(r"^(?:answer|a|assistant)\s*:\s*|^[\s\"'*_>(\[-]+")


@lru_cache(maxsize=65_536)
def is_refusal(answer: str) -> bool:
    """Whether an answer begins by declining.

    Only its beginning counts: an answer that gives something and then owns to a doubt has
    answered. An empty answer is no refusal. English phrases only.
    """
    text = " ".join(answer[:_LOOKED_AT].translate(_APOSTROPHES).lower().split())
    while (shorter := _LEAD.sub("", text, count=1)) != text:
        text = shorter
    return _OPENING.match(text) is not None


def refusals(requests: pa.Table) -> Floats:
    """1.0 where a request's answer declines, else 0.0; NaN where it has no text."""
    texts = requests["output_text"].to_pylist()
    found = (float(is_refusal(text)) if text else np.nan for text in texts)
    return np.fromiter(found, dtype=np.float64, count=len(texts))
