"""Text of others stays text, and code stays code."""

import pytest

from s2l.workloads.markdown_text import code, line


def test_a_line_has_no_markup() -> None:
    assert line("a\n\n# b") == "a \\# b"
    assert line("<b>&amp;[x](y)") == "\\<b\\>&amp;amp;\\[x\\](y)"
    assert line("a | b") == "a \\| b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a <b>", "`a <b>`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), ("a\nb", "`a b`")],
)
def test_code(text: str, shown: str) -> None:
    assert code(text) == shown
