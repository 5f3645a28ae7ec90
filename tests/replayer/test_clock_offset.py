"""Another machine's clock, read over a line that takes time."""

import pytest

from s2l.replayer.scale_out.clock_offset import ClockOffset, boot_id, measure_offset


class Line:
    """A clock ``ahead_ns`` of ours behind a line; each question takes its two delays."""

    def __init__(self, ahead_ns: int, delays_ns: list[tuple[int, int]]) -> None:
        self._ahead_ns = ahead_ns
        self._delays_ns = iter(delays_ns)
        self._now_ns = 1_000

    def now_ns(self) -> int:
        return self._now_ns

    def their_now_ns(self) -> int:
        there_ns, back_ns = next(self._delays_ns)
        theirs_ns = self._now_ns + there_ns + self._ahead_ns
        self._now_ns += there_ns + back_ns
        return theirs_ns


def test_the_quickest_answer_counts_and_bounds_its_error() -> None:
    line = Line(7_000_000, [(900, 100), (30, 10), (500, 500)])
    found = measure_offset(line.their_now_ns, "elsewhere", now_ns=line.now_ns, rounds=3)
    assert found == ClockOffset(offset_ns=7_000_010, error_ns=20)
    assert abs(found.offset_ns - 7_000_000) <= found.error_ns


def test_one_machine_has_one_clock() -> None:
    def never() -> int:
        raise AssertionError("asked")

    assert boot_id()
    assert measure_offset(never, boot_id()) == ClockOffset(0, 0)


def test_asking_never_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="rounds is 0; it must be 1 or more"):
        measure_offset(lambda: 0, "elsewhere", rounds=0)
