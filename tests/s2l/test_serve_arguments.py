"""What ``s2l serve`` takes for a model, and what for arguments of vLLM."""

import pytest

from s2l.commands.serve import without_options


@pytest.mark.parametrize(
    ("model", "arguments", "found"),
    [
        (None, (), (None, ())),
        ("my/model", ("--max-num-seqs", "4"), ("my/model", ("--max-num-seqs", "4"))),
        ("--max-num-seqs", ("4",), (None, ("--max-num-seqs", "4"))),
    ],
)
def test_an_option_of_vllm_is_no_model(
    model: str | None, arguments: tuple[str, ...], found: tuple[str | None, tuple[str, ...]]
) -> None:
    assert without_options(model, arguments) == found
