"""Which parts of an address look like keys."""

import pytest

from s2l.collectors.searching.base import BadSearchUrl, check_address
from s2l.collectors.searching.shown_address import shown_address
from s2l.collectors.searching.site import check_template


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/s?q={query}&n={n}&key=AbC", "https://h/s?q={query}&n={n}&key=***"),
        ("https://h/s?apikey=a&api_key=b&q=c", "https://h/s?apikey=***&api_key=***&q=c"),
        ("https://h/?access_token=a/b?c;d", "https://h/?access_token=***"),
        (
            "https://h/?X-Amz-Signature=ab&sig=c&SID=d",
            "https://h/?X-Amz-Signature=***&sig=***&SID=***",
        ),
        (
            "https://h/?client_secret=a&passwd=b&jwt=c",
            "https://h/?client_secret=***&passwd=***&jwt=***",
        ),
        ("https://h/?%6bey=a&filter[token]=b", "https://h/?%6bey=***&filter[token]=***"),
        ("https://h/?q=a;token=b", "https://h/?q=***"),
        ("https://h/s;jsessionid=A1?q={query}", "https://h/s;jsessionid=***?q={query}"),
        ("https://h/#access_token=a", "https://h/#access_token=***"),
        ("https://h/v1/0123456789abcdef01234567/s", "https://h/v1/***/s"),
        ("https://h/?0123456789abcdef01234567", "https://h/?***"),
        ("https://h/?x=0123456789abcdef01234567", "https://h/?x=***"),
        ("http://me:pw@[bad/?key=a", "http://***@[bad/?key=***"),
    ],
)
def test_what_looks_like_a_key_is_hidden(url: str, shown: str) -> None:
    assert shown_address(url) == shown
    assert shown_address(shown) == shown


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.example/3/search?q={query}&check_keywords=yes&area=default",
        "https://h/2026/how-to-sort-100-heaps-in-python-3?author=me&design=1&passage=2#part",
        "https://h/?key={query}",
        "http://127.0.0.1:8888",
        "demo site",
        "",
    ],
)
def test_everything_else_stays(url: str) -> None:
    assert shown_address(url) == url


def test_an_address_that_is_refused_is_said_back_without_its_key() -> None:
    for check in (check_template, lambda url: check_address(url, "search URL", "http://x")):
        with pytest.raises(BadSearchUrl) as failed:
            check("ftp://h/?key=canary7c1f")
        assert "?key=***" in str(failed.value)
    with pytest.raises(BadSearchUrl, match=r"'http://h/\?key=\*\*\*': {query} is missing"):
        check_template("http://h/?key=canary7c1f")
