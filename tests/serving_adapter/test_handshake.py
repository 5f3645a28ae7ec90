"""Who may open a session: no page of another server, nobody who wants another model."""

import pytest

from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.realtime.handshake import foreign_page, wrong_model


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, ()),
        ("http://localhost:8000", ()),
        ("https://LocalHost:8000", ()),
        ("https://app.example", ("https://app.example",)),
        ("null", ("*",)),
    ],
)
def test_own_pages_trusted_pages_and_programs_may(
    origin: str | None, allowed: tuple[str, ...]
) -> None:
    assert foreign_page(origin, "localhost:8000", allowed) is None


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:8001", "http://localhost", "null", "", "http://[a"],
)
def test_pages_of_other_servers_may_not(origin: str) -> None:
    assert foreign_page(origin, "", ()) is not None
    refusal = foreign_page(origin, "localhost:8000", ("https://app.example",))
    assert refusal is not None
    assert (refusal.status, refusal.code) == (403, "origin_not_allowed")
    assert repr(origin) in refusal.body()["error"]["message"]
    assert "--allowed-origins" in refusal.message


def test_the_model_asked_for_has_to_be_served() -> None:
    info = MockEngine().info
    assert wrong_model(None, info) is wrong_model("", info) is wrong_model("mock", info) is None
    refusal = wrong_model("other", info)
    assert refusal is not None
    assert refusal.status == 404
    assert refusal.body()["error"] == {
        "type": "invalid_request_error",
        "code": "model_not_found",
        "message": "this server serves 'mock', not 'other'",
        "param": "model",
    }
