"""Ctrl-C where it has to wait."""

import os
import signal

import pytest

from s2l.drain import interrupt_deferred


def _interrupted(times: int, done: list[int]) -> None:
    with interrupt_deferred("it has started"):
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        done.append(times)


def test_ctrl_c_waits_for_the_end_of_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        _interrupted(1, done)
    assert done == [1]
    assert "stopping as soon as it has started" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_once_more_does_not_wait() -> None:
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(2, done)
    assert done == []


def test_no_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupt_deferred("it has started"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
