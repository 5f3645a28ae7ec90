"""Cuts contexts to a budget of tokens, fairly between the documents of a query."""

from collections.abc import Sequence


def fair_shares(lengths: Sequence[int], budget: int) -> list[int]:
    """How many tokens of each document are kept so that the sum is at most ``budget``.

    Short documents are kept whole and leave what they do not use to the longer ones (max-min
    fairness), so that a long page that came first does not crowd the others out.
    """
    shares = [0] * len(lengths)
    left, open_documents = budget, len(lengths)
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        shares[index] = min(lengths[index], left // open_documents)
        left -= shares[index]
        open_documents -= 1
    return shares
