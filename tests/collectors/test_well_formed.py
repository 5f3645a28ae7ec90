import json
from typing import Any

import pytest

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.record import Recorder
from s2l.collectors.well_formed import one_line, readable, well_formed
from s2l.workloads.arrival import ArrivalKind


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain \u00fc \U0001f600", "plain \u00fc \U0001f600"),
        ("a\ud800b", "a\ufffdb"),
        ("\udfff\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_surrogates_are_joined_or_replaced(text: str, clean: str) -> None:
    assert well_formed(text) == clean
    clean.encode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y", "xy"),
        ("\x9b31m\x00\x08\x7f", "31m"),
        ("\x1b", ""),
        ("a\x1b]b and c", "a]b and c"),
        ("a\x1b]b\nc\x07d", "a]b\ncd"),
        ("a\x1b]b\x1b]0;c\x07d", "a]bd"),
        ("a\x1b]0;b\x9cc", "ac"),
        ("\x1b[1", "[1"),
    ],
)
def test_control_characters_are_left_out(text: str, clean: str) -> None:
    assert readable(text) == clean


def test_a_stray_start_of_a_sequence_costs_no_text() -> None:
    page = "The heron waits.\n" * 500
    for stray in ("\x1b]", "\x1b", "\x9d"):
        assert readable(stray + page).endswith(page)
    numbers = "31415926 " * 500
    assert readable(f"\x1b[{numbers.replace(' ', '')}T") == f"[{numbers.replace(' ', '')}T"
    line = page.replace("\n", " ")  # as a page without line ends has it
    assert readable(f"\x1b]{line}\x07") == f"]{line}"


def test_a_detail_is_one_short_line() -> None:
    assert one_line("a\r\nb \x1b[1mc" + "d" * 999, 10) == "a b cddddd"
    assert Failure("broken", "a\n\x1b[1mb\ud800").detail == "a b\ufffd"
    assert len(Failure("broken", "x" * 999).detail) == 200


def test_every_code_is_explained() -> None:
    constants = {name: value for name, value in vars(failure).items() if name.isupper()}
    codes = {value for value in constants.values() if isinstance(value, str)}
    assert codes == set(failure.CODES)


def test_nothing_ill_formed_is_recorded(sink: Any) -> None:
    class Records:
        def put(self, record: Any) -> None:
            sink.add_arrival(record)

    recorder = Recorder("a", lambda: 0, 0, Records())
    meta = {"hits": [{"title": "x\ud800"}], "k\udfff": ("\ud800",), "n": 1}
    recorder.arrived(ArrivalKind.SEARCH, start_us=0, status="s", detail="d\ud800", meta=meta)
    [arrival] = sink.arrivals("a")
    assert arrival.detail == "d\ufffd"
    assert arrival.meta == {"hits": [{"title": "x\ufffd"}], "k\ufffd": ["\ufffd"], "n": 1}
    json.dumps(arrival.meta, ensure_ascii=False).encode()
