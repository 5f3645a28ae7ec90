import multiprocessing

import pytest

from s2l.collectors.extract import Extracted, extract_text
from s2l.collectors.extractor import Extractor
from s2l.collectors.failure import Failure
from s2l.collectors.fetch import Fetched

_PARAGRAPH = "The heron stood in the shallow water and waited for the light to change. " * 3


def _page(body: bytes, mime: str = "text/html", charset: str | None = None) -> Fetched:
    return Fetched("http://host/page", mime, charset, body, 0, 0)


def _html(text: str) -> str:
    menu = "<nav><a href='/'>Home</a></nav>"
    head = "<head><title>Heron</title></head>"
    return f"<html>{head}<body>{menu}<main><p>{text}</p></main></body></html>"


def test_the_main_text_and_the_title_are_found() -> None:
    found = extract_text(_html(_PARAGRAPH).encode(), "text/html", None)
    assert found == Extracted("Heron", _PARAGRAPH.strip())


@pytest.mark.parametrize("charset", ["utf-16", "latin-1", "cp1252"])
def test_the_header_says_how_bytes_are_letters(charset: str) -> None:
    text = f"Größe für {_PARAGRAPH}"
    body = _html(text).encode(charset)
    assert extract_text(body, "text/html", charset).text == text.strip()


def test_an_unknown_charset_is_as_none() -> None:
    assert extract_text(_html(_PARAGRAPH).encode(), "text/html", "x-none").title == "Heron"


def test_plain_text_is_taken_as_it_is() -> None:
    assert extract_text(b" a < b \n| c |\n", "text/plain", None) == Extracted("", "a < b \n| c |")


def test_a_page_without_a_main_part_gives_what_it_says() -> None:
    body = b"<html><body><div id='comments'>Seen at dawn.</div></body></html>"
    assert extract_text(body, "text/html", None).text == "Seen at dawn."


async def test_pages_without_text_and_dead_workers_are_failures() -> None:
    before = set(multiprocessing.active_children())
    async with Extractor(workers=1) as extractor:
        found = await extractor.extract(_page(_html(_PARAGRAPH).encode()))
        assert found.title == "Heron"
        for body in (b"", b"<html><body><img src='x'></body></html>"):
            with pytest.raises(Failure) as failed:
                await extractor.extract(_page(body))
            assert failed.value.status == "empty"
        [worker] = set(multiprocessing.active_children()) - before
        worker.kill()
        worker.join()
        with pytest.raises(Failure) as failed:
            await extractor.extract(_page(_html(_PARAGRAPH).encode()))
        assert failed.value.status == "extract_failed"
        # The next page gets a new worker.
        assert await extractor.extract(_page(_html(_PARAGRAPH).encode())) == found


async def test_a_page_that_takes_too_long_is_a_failure_and_the_next_is_not() -> None:
    slow = _html(f"{_PARAGRAPH}</p><p>" * 30_000)
    async with Extractor(workers=1, limit_s=0.3) as extractor:
        with pytest.raises(Failure) as failed:
            await extractor.extract(_page(slow.encode()))
        assert failed.value.status == "extract_timeout"
        found = await extractor.extract(_page(_html(_PARAGRAPH).encode()))
        assert found.text == _PARAGRAPH.strip()
