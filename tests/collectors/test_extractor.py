import asyncio
import multiprocessing

import pytest

from s2l.collectors.extraction.charset import decode
from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.extraction.extractor import Extractor
from s2l.collectors.extraction.text import extract_text
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import Fetched

_PARAGRAPH = "The heron stood in the shallow water and waited for the light to change. " * 3


_PLAIN = {"charset": "utf-8", "charset_from": "default"}


def _page(body: bytes, mime: str = "text/html", charset: str | None = None) -> Fetched:
    return Fetched("http://host/page", mime, charset, body, 0, 0)


def _html(text: str) -> str:
    menu = "<nav><a href='/'>Home</a></nav>"
    head = "<head><title>Heron</title></head>"
    return f"<html>{head}<body>{menu}<main><p>{text}</p></main></body></html>"


def test_the_main_text_and_the_title_are_found() -> None:
    found = extract_text(_html(_PARAGRAPH).encode(), "text/html", None)
    assert found == Extracted("Heron", _PARAGRAPH.strip(), _PLAIN)


@pytest.mark.parametrize("charset", ["utf-16", "latin-1", "cp1252"])
def test_the_header_says_how_bytes_are_letters(charset: str) -> None:
    text = f"Größe für {_PARAGRAPH}"
    body = _html(text).encode(charset)
    assert extract_text(body, "text/html", charset).text == text.strip()


def test_an_unknown_charset_is_as_none() -> None:
    assert extract_text(_html(_PARAGRAPH).encode(), "text/html", "x-none").title == "Heron"


def test_plain_text_is_taken_as_it_is() -> None:
    assert extract_text(b" a < b \n| c |\n", "text/plain", None) == Extracted(
        "", "a < b \n| c |", _PLAIN
    )


def test_a_page_without_a_main_part_gives_what_it_says() -> None:
    body = b"<html><body><div id='comments'>Seen at dawn.</div></body></html>"
    assert extract_text(body, "text/html", None).text == "Seen at dawn."


async def test_a_page_without_text_is_an_answer_and_a_dead_worker_a_failure() -> None:
    before = set(multiprocessing.active_children())
    async with Extractor(workers=1) as extractor:
        found = await extractor.read(_page(_html(_PARAGRAPH).encode()))
        assert found.title == "Heron"
        for body in (b"", b"<html><body><img src='x'></body></html>"):
            assert (await extractor.read(_page(body))).text == ""
        [worker] = set(multiprocessing.active_children()) - before
        worker.kill()
        worker.join()
        with pytest.raises(Failure) as failed:
            await extractor.read(_page(_html(_PARAGRAPH).encode()))
        assert failed.value.status == "extract_failed"
        # The next page gets a new worker.
        assert await extractor.read(_page(_html(_PARAGRAPH).encode())) == found


async def test_a_page_that_takes_too_long_is_a_failure_and_the_next_is_not() -> None:
    slow = _html(f"{_PARAGRAPH}</p><p>" * 30_000)
    async with Extractor(workers=1, limit_s=0.3) as extractor:
        with pytest.raises(Failure) as failed:
            await extractor.read(_page(slow.encode()))
        assert failed.value.status == "extract_timeout"
        found = await extractor.read(_page(_html(_PARAGRAPH).encode()))
        assert found.text == _PARAGRAPH.strip()


@pytest.mark.parametrize(
    ("body", "header", "charset", "source", "wrong"),
    [
        (b"abc", None, "utf-8", "default", None),
        ("Größe".encode(), "utf-8", "utf-8", "header", None),
        ("Größe".encode("latin-1"), "latin-1", "cp1252", "header", None),
        ("\ufeffGröße".encode(), "latin-1", "utf-8", "bom", None),
        ("\ufeffGröße".encode("utf-16-be"), "utf-8", "utf-16-be", "bom", None),
        ("Größe".encode(), "latin-1", "utf-8", "detected", "latin-1"),
        (b'<meta charset="windows-1251">' + "Цапля".encode("cp1251"), None, "cp1251", "meta", None),
        (b"<meta charset=utf-16>" + "Größe".encode(), None, "utf-8", "meta", None),
        (
            b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>"
            + "Цапля".encode("koi8-r"),
            "x-none",
            "koi8-r",
            "meta",
            "x-none",
        ),
        (
            b'<?xml version="1.0" encoding="iso-8859-2"?>' + "Łódź".encode("iso-8859-2"),
            None,
            "iso8859-2",
            "meta",
            None,
        ),
        ("日本語のテキスト。".encode("shift_jis") * 9, None, "cp932", "detected", None),
        (b"abc", "base64", "utf-8", "detected", "base64"),
        (b"abc", "utf-7", "utf-8", "detected", "utf-7"),
    ],
)
def test_bytes_become_letters_by_mark_header_meta_and_themselves(
    body: bytes, header: str | None, charset: str, source: str, wrong: str | None
) -> None:
    decoded = decode(body, header, html=True)
    assert (decoded.charset, decoded.source, decoded.wrong_label) == (charset, source, wrong)
    assert decoded.undecodable == 0


@pytest.mark.parametrize(
    ("html", "needs"),
    [
        ("<title>App</title><body><div id=root></div><script src=a.js></script>", True),
        ("<title>App</title><body><p>Please enable JavaScript.</p><script>x()</script>", True),
        ("<title>Ad</title><body><p>Little.</p><script type=application/json>{}</script>", False),
        ("<title>No</title><body><p>Little.</p>", False),
        (f"<title>Yes</title><body><main><p>{_PARAGRAPH}</p></main><script>x()</script>", False),
    ],
)
def test_a_page_without_text_that_brings_a_program_needs_a_browser(html: str, needs: bool) -> None:
    assert extract_text(f"<html>{html}</html>".encode(), "text/html", None).needs_script is needs


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("0; url=/next", "/next"),
        ("3;URL='next.html'", "next.html"),
        ("30; url=/next", None),
        ("0", None),
        ("soon; url=/next", None),
    ],
)
def test_where_a_page_sends_its_reader(content: str, url: str | None) -> None:
    html = f'<html><head><meta http-equiv="Refresh" content="{content}"></head></html>'
    assert extract_text(html.encode(), "text/html", None).refresh_url == url


async def test_a_page_that_takes_too_much_memory_is_a_failure_and_the_next_is_not() -> None:
    large = b"[" + b'{"a": 1},' * 1_000_000 + b"0]"
    async with Extractor(workers=1, memory_bytes=60_000_000) as extractor:
        with pytest.raises(Failure) as failed:
            await extractor.read(_page(large, "application/json"))
        assert failed.value.status == "extract_memory"
        found = await extractor.read(_page(_html(_PARAGRAPH).encode()))
        assert found.text == _PARAGRAPH.strip()


async def test_a_page_behind_one_that_ends_the_worker_is_extracted_all_the_same() -> None:
    """Both are with the one worker; only the first is to blame."""
    slow = _html(f"{_PARAGRAPH}</p><p>" * 30_000)
    async with Extractor(workers=1, limit_s=0.3) as extractor:
        first = asyncio.create_task(extractor.read(_page(slow.encode())))
        await asyncio.sleep(0)
        behind = [
            asyncio.create_task(extractor.read(_page(_html(_PARAGRAPH).encode()))) for _ in range(5)
        ]
        with pytest.raises(Failure) as failed:
            await first
        assert failed.value.status == "extract_timeout"
        assert {(await page).text for page in behind} == {_PARAGRAPH.strip()}
