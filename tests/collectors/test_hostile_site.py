"""Every way in which a site may be hostile, and the code that the trace has for it."""

import dataclasses
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.page_fetching import PageFetching
from s2l.collectors.page_reader import ReadPage
from s2l.collectors.politeness.manners import Manners, RetryPolicy

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import BOMB_BYTES, PARAGRAPH, HostileSite, build_all

pytestmark = pytest.mark.asyncio(loop_scope="module")

_TEXT = PARAGRAPH.strip()
_LIMITS = FetchLimits(total_s=2.0, connect_s=1.0, first_byte_s=0.5, idle_s=0.4)
# The site itself may be reached, no other private address.
_SETTINGS = CrawlSettings(
    limits=_LIMITS,
    manners=Manners.at_home(),
    allow_private=("127.0.0.1/32",),
    extract_workers=1,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[HostileSite]:
    build_all()
    async with HostileSite() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fetching() -> AsyncIterator[PageFetching]:
    async with PageFetching(_SETTINGS) as running:
        yield running


async def _read(fetching: PageFetching, url: str) -> ReadPage:
    return await fetching.reader.read(url, 0, lambda: time.monotonic_ns() // 1000)


async def _failure(fetching: PageFetching, url: str) -> Failure:
    with pytest.raises(Failure) as failed:
        await _read(fetching, url)
    return failed.value


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/redirect-loop", "too_many_redirects"),
        ("/to-metadata", "private_address"),
        ("/to-private", "private_address"),
        ("/to-ipv6-loopback", "private_address"),
        ("/to-file", "bad_scheme"),
        ("/to-ftp", "bad_scheme"),
        ("/to-script", "bad_scheme"),
        ("/to-nowhere", "bad_url"),
        ("/moved-then-forbidden", "http_403"),
        ("/gzip-bomb", "too_large"),
        ("/brotli-bomb", "too_large"),
        ("/badzip", "broken"),
        ("/cut-zip", "broken"),
        ("/strange-zip", "broken"),
        ("/slow-headers", "first_byte_timeout"),
        ("/silent", "first_byte_timeout"),
        ("/stalled-body", "idle_timeout"),
        ("/slow-body", "timeout"),
        ("/endless-body", "too_large"),
        ("/endless-zip", "too_large"),
        ("/huge-length", "too_large"),
        ("/reset", "broken"),
        ("/too-short", "broken"),
        ("/not-http", "broken"),
        ("/big-header", "header_too_large"),
        ("/many-headers", "header_too_large"),
        ("/refresh-loop", "too_many_redirects"),
        ("/refresh-file", "bad_scheme"),
        ("/refresh-private", "private_address"),
        ("/empty", "empty"),
        ("/pixel", "empty"),
        ("/image", "not_text"),
        ("/bomb.pdf", "extract_memory"),
        ("/broken.pdf", "extract_failed"),
        ("/bad.json", "extract_failed"),
        ("/reason", "http_404"),
    ],
)
async def test_what_a_site_does_has_its_code(
    site: HostileSite, fetching: PageFetching, path: str, status: str
) -> None:
    failed = await _failure(fetching, site.url + path)
    assert failed.status == status
    assert failed.detail.isprintable()
    failed.detail.encode()


@pytest.mark.parametrize(
    "path",
    [
        *("/page", "/to-page", "/refresh", "/calendar/7"),
        *("/gzip", "/gzip-members", "/deflate", "/bare-deflate", "/brotli"),
        *("/too-long", "/bytes-in-header", "/no-such-charset"),
    ],
)
async def test_what_can_be_read_is_read(
    site: HostileSite, fetching: PageFetching, path: str
) -> None:
    site.forget()
    read = await _read(fetching, site.url + path)
    assert read.found.text.startswith(_TEXT)
    assert read.found.title == "Heron"
    # Nothing was asked for beyond the page and where it was redirected to.
    assert len(site.requests) == 1 + len(read.page.redirects)


async def test_a_page_of_a_hundred_thousand_links_is_read(
    site: HostileSite, fetching: PageFetching
) -> None:
    read = await _read(fetching, f"{site.url}/links")
    assert _TEXT in read.found.text


async def test_redirects_are_told_and_cost_time(site: HostileSite, fetching: PageFetching) -> None:
    read = await _read(fetching, f"{site.url}/to-page")
    assert read.page.url == f"{site.url}/page"
    assert read.page.redirects == (f"{site.url}/page",)
    read = await _read(fetching, f"{site.url}/refresh")
    assert read.page.redirects == (f"{site.url}/page",)


@pytest.mark.parametrize("path", ["/gzip-bomb", "/brotli-bomb", "/endless-zip", "/endless-body"])
async def test_bombs_leave_memory_flat(
    site: HostileSite, fetching: PageFetching, path: str
) -> None:
    tracemalloc.start()
    try:
        failed = await _failure(fetching, site.url + path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert failed.status == "too_large"
    # The limit, its last doubling, and the piece in hand.
    assert peak < 3 * _LIMITS.max_bytes < BOMB_BYTES / 3


async def test_a_page_that_hangs_the_extractor_is_given_up_and_the_next_is_read(
    site: HostileSite,
) -> None:
    settings = CrawlSettings(
        manners=Manners.at_home(), allow_private=True, extract_workers=1, extract_s=0.5
    )
    async with PageFetching(settings) as fetching:
        assert (await _failure(fetching, f"{site.url}/hang")).status == "extract_timeout"
        assert (await _read(fetching, f"{site.url}/page")).found.text == _TEXT


@pytest.mark.parametrize(
    ("path", "meta"),
    [
        ("/page", {"charset": "utf-8", "charset_from": "default"}),
        (
            "/utf8-as-latin",
            {"charset": "utf-8", "charset_from": "detected", "charset_wrong": "iso-8859-1"},
        ),
        (
            "/latin-as-utf8",
            {"charset": "cp1252", "charset_from": "detected", "charset_wrong": "utf-8"},
        ),
        (
            "/no-such-charset",
            {"charset": "utf-8", "charset_from": "detected", "charset_wrong": "x-none"},
        ),
    ],
)
async def test_lies_about_the_charset_are_told(
    site: HostileSite, fetching: PageFetching, path: str, meta: dict[str, object]
) -> None:
    read = await _read(fetching, site.url + path)
    assert read.found.meta == meta
    assert ("Größe" in read.found.text) == ("latin" in path)


async def test_bytes_that_are_no_letters_are_kept_and_counted(
    site: HostileSite, fetching: PageFetching
) -> None:
    read = await _read(fetching, f"{site.url}/stray-bytes")
    assert read.found.text.endswith(" a stray \ufffd and \ufffd. Größe")
    assert read.found.meta == {
        "charset": "utf-8",
        "charset_from": "header",
        "charset_wrong": "utf-8",
        "undecodable": 2,
    }


async def test_titles_cannot_speak_to_a_terminal(site: HostileSite, fetching: PageFetching) -> None:
    read = await _read(fetching, f"{site.url}/titles")
    assert read.found.title == "</script>Red<script>alert(1)"


@pytest.mark.parametrize(
    ("path", "title", "words"),
    [
        ("/surrogate.json", "T\ufffd", "text: lone \ufffd, pair \U0001f600"),
        ("/surrogate", "He\ufffdron", "waited for the \ufffd to change"),
    ],
)
async def test_a_lone_surrogate_goes_no_further(
    site: HostileSite, fetching: PageFetching, path: str, title: str, words: str
) -> None:
    read = await _read(fetching, site.url + path)
    assert read.found.title == title
    assert words in read.found.text
    read.found.text.encode()


async def test_json_pdf_and_plain_text_are_read(site: HostileSite, fetching: PageFetching) -> None:
    json_page = await _read(fetching, f"{site.url}/data.json")
    assert json_page.found.title == "Heron"
    assert json_page.found.text == "name: Heron\nlegs: 2\neats: fish"
    pdf_page = await _read(fetching, f"{site.url}/heron.pdf")
    assert (pdf_page.found.title, pdf_page.found.text) == ("Heron", "The heron waits.")
    assert (await _read(fetching, f"{site.url}/text")).found.text == "a < b"


async def test_a_failure_tells_how_far_it_came(site: HostileSite, fetching: PageFetching) -> None:
    failed = await _failure(fetching, f"{site.url}/empty")
    assert failed.meta["fetch_us"] >= failed.meta["first_byte_us"] > 0
    failed = await _failure(fetching, f"{site.url}/moved-then-forbidden")
    assert failed.meta["redirects"] == [f"{site.url}/forbidden"]


@pytest.mark.parametrize(
    ("robots", "path", "status"),
    [
        (("200 OK", b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n"), "/page", "robots_disallowed"),
        (("200 OK", b"User-agent: s2l-crawl\nDisallow: /p"), "/to-page", "robots_disallowed"),
        (("500 Internal Server Error", b""), "/page", "robots_unreachable"),
        (("429 Too Many Requests", b""), "/page", "robots_unreachable"),
        (("302 Found\r\nLocation: http://10.0.0.1/", b""), "/page", "private_address"),
        (("302 Found\r\nLocation: file:///etc/passwd", b""), "/page", "bad_scheme"),
    ],
)
async def test_robots_txt_is_obeyed(
    site: HostileSite, robots: tuple[str, bytes], path: str, status: str
) -> None:
    site.forget()
    site.robots = robots
    manners = Manners(delay_s=0.0, retry=RetryPolicy(attempts=1))
    settings = dataclasses.replace(_SETTINGS, manners=manners)
    async with PageFetching(settings) as fetching:
        failed = await _failure(fetching, site.url + path)
        assert failed.status == status
        assert (await _failure(fetching, f"{site.url}/page")).status == status
    assert site.asked_for("/robots.txt") == 1
    assert site.asked_for("/page") == 0
    site.forget()


_SPELLINGS = [
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001"),
    *("localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "0.0.0.0", "0"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b:1::a9fe:a9fe]", "[2002:7f00:1::]", "[fe80::1%25lo]"),
    *("[fd00:ec2::254]", "[ff02::1]", "169.254.169.254", "2852039166", "0xa9fea9fe"),
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "198.18.0.1"),
    *("224.0.0.1", "255.255.255.255", "168.63.129.16", "①②⑦.⓪.⓪.①", "127。0。0。1"),
]


@pytest.mark.parametrize("host", _SPELLINGS)
@pytest.mark.parametrize("before", ["", "user:secret@"])
async def test_no_spelling_of_a_private_address_is_fetched(
    site: HostileSite, host: str, before: str
) -> None:
    site.forget()
    async with Fetcher(FetchLimits(connect_s=1.0)) as fetcher:
        with pytest.raises(Failure) as failed:
            await fetcher.fetch(f"http://{before}{host}:{site.port}/page", lambda: 0)
    assert failed.value.status == "private_address"
    assert "secret" not in failed.value.detail
    assert site.requests == []
