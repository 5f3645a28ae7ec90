"""KV room is handed out so that whoever holds some can finish."""

import pytest

from s2l.serving_adapter.realtime.admission import Admission, Overloaded


def test_sessions_wait_until_their_need_fits() -> None:
    admission = Admission(100, block_size=10, max_sessions=10)
    first = admission.request(60)
    second = admission.request(60)
    assert first.granted.is_set()
    assert not second.granted.is_set()
    assert (admission.waiting, admission.free_tokens) == (1, 40)
    admission.release(first)
    assert second.granted.is_set()
    assert (admission.waiting, admission.free_tokens) == (0, 40)


def test_room_is_counted_in_whole_blocks() -> None:
    admission = Admission(40, block_size=16, max_sessions=10)
    assert admission.free_tokens == 32
    admission.request(17)
    assert admission.free_tokens == 0


def test_a_complete_session_gives_back_what_it_will_not_need() -> None:
    admission = Admission(100, block_size=10, max_sessions=10)
    first = admission.request(100)
    second = admission.request(70)
    admission.shrink(first, 30)
    assert second.granted.is_set()
    assert admission.free_tokens == 0
    admission.release(first)
    admission.release(second)
    assert admission.free_tokens == 100


def test_complete_sessions_go_before_open_ones_that_came_earlier() -> None:
    admission = Admission(100, block_size=10, max_sessions=10)
    running = admission.request(80)
    open_session = admission.request(100)
    complete = admission.request(100)
    admission.shrink(complete, 20)
    assert complete.granted.is_set()
    assert not open_session.granted.is_set()
    admission.release(running)
    admission.release(complete)
    assert open_session.granted.is_set()


def test_an_open_session_is_not_overtaken_by_smaller_open_ones() -> None:
    admission = Admission(100, block_size=10, max_sessions=10)
    running = admission.request(50)
    large = admission.request(100)
    small = admission.request(10)
    assert not small.granted.is_set()
    admission.release(running)
    assert large.granted.is_set()
    assert not small.granted.is_set()


def test_the_number_of_sessions_is_limited_too() -> None:
    admission = Admission(1000, block_size=10, max_sessions=1)
    first = admission.request(10)
    second = admission.request(10)
    assert not second.granted.is_set()
    admission.release(first)
    assert second.granted.is_set()


def test_a_waiting_session_that_gives_up_leaves_the_queue() -> None:
    admission = Admission(100, block_size=10, max_sessions=10)
    first, second, third = (admission.request(100) for _ in range(3))
    admission.release(second)
    admission.release(first)
    assert third.granted.is_set()
    assert not second.granted.is_set()


def test_too_many_waiting_are_refused() -> None:
    admission = Admission(10, block_size=10, max_sessions=10, max_waiting=1)
    admission.request(10)
    admission.request(10)
    with pytest.raises(Overloaded, match="1 sessions wait for KV cache"):
        admission.request(10)
