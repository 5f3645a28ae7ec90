"""The fetcher by itself: what it gives, and what it makes of addresses."""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.address_check import AddressRule, is_public, numeric_address
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.fetching.limits import FetchLimits

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import PAGE, HostileSite

_SIZE = len(PAGE.encode())


def _ticks() -> Callable[[], int]:
    numbers = iter(range(1000))
    return lambda: next(numbers)


def _now_us() -> int:
    return time.monotonic_ns() // 1000


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as running:
        yield running


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(FetchLimits(max_redirects=1), allow_private=True) as running:
        yield running


async def test_a_page_comes_with_its_type_and_its_times(
    site: HostileSite, fetcher: Fetcher
) -> None:
    start_us = _now_us()
    page = await fetcher.fetch(f"{site.url}/slow#part", _now_us)
    assert (page.url, page.mime, page.charset) == (f"{site.url}/slow", "text/html", None)
    assert page.body == PAGE.encode()
    assert start_us + 100_000 < page.first_byte_us <= page.body_us <= _now_us()
    assert page.connect_us > 0
    assert page.meta(start_us) == {
        "wait_us": page.wait_us,
        "dns_us": 0,
        "connect_us": page.connect_us,
        "first_byte_us": page.first_byte_us - start_us,
        "fetch_us": page.body_us - start_us,
    }


async def test_a_name_is_looked_up_and_connected_to_once(
    site: HostileSite, fetcher: Fetcher
) -> None:
    url = f"http://localhost:{site.port}/page"
    first = await fetcher.fetch(url, _now_us)
    again = await fetcher.fetch(url, _now_us)
    assert first.dns_us > 0
    assert first.connect_us > 0
    assert (again.dns_us, again.connect_us) == (0, 0)


@pytest.mark.parametrize(("most", "fits"), [(_SIZE, True), (_SIZE - 1, False)])
@pytest.mark.parametrize("path", ["/page", "/gzip", "/brotli"])
async def test_a_body_of_just_the_limit_is_taken(
    site: HostileSite, path: str, most: int, fits: bool
) -> None:
    async with Fetcher(FetchLimits(max_bytes=most), allow_private=True) as fetcher:
        if fits:
            assert (await fetcher.fetch(site.url + path, _now_us)).body == PAGE.encode()
            return
        with pytest.raises(Failure, match="too_large"):
            await fetcher.fetch(site.url + path, _now_us)
    async with Fetcher(FetchLimits(max_bytes=most, cut_off=True), allow_private=True) as fetcher:
        page = await fetcher.fetch(site.url + path, _now_us)
        assert page.body == PAGE.encode()[:most]


async def test_redirects_are_counted(site: HostileSite, fetcher: Fetcher) -> None:
    page = await fetcher.fetch(f"{site.url}/to-page", _now_us)
    assert page.redirects == (f"{site.url}/page",)
    async with Fetcher(FetchLimits(max_redirects=0), allow_private=True) as strict:
        with pytest.raises(Failure, match="too_many_redirects"):
            await strict.fetch(f"{site.url}/to-page", _now_us)


async def test_headers_of_a_request_go_to_its_own_site_only(
    site: HostileSite, fetcher: Fetcher
) -> None:
    async with HostileSite() as other:
        site.away = f"{other.url}/page"
        for path in ("/to-page", "/away"):
            await fetcher.fetch(site.url + path, _now_us, headers={"X-Key": "secret"})
        assert [headers.get("x-key") for headers in site.headers] == ["secret"] * 3
        assert [headers.get("x-key") for headers in other.headers] == [None]


async def test_the_type_must_be_one_that_was_asked_for(site: HostileSite, fetcher: Fetcher) -> None:
    with pytest.raises(Failure, match="not_text: image/png"):
        await fetcher.fetch(f"{site.url}/image", _now_us)
    assert (await fetcher.fetch(f"{site.url}/image", _now_us, None)).body == b"\x89PNG"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("file:///etc/passwd", "bad_scheme"),
        ("ftp://host/file", "bad_scheme"),
        ("//host/page", "bad_scheme"),
        ("page.html", "bad_scheme"),
        ("", "bad_scheme"),
        ("http://[::1", "bad_url"),
        ("http://", "bad_url"),
        ("http://127.0.0.1:99999/", "bad_url"),
        ("http://no-such-host.invalid/", "dns"),
        (f"http://{'a' * 70}.invalid/", "bad_url"),
        ("http://a\ud800b.invalid/", "bad_url"),
    ],
)
async def test_addresses_that_lead_nowhere(fetcher: Fetcher, url: str, status: str) -> None:
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(url, _ticks())
    assert failed.value.status == status
    failed.value.detail.encode()


async def test_a_closed_port_is_a_connect_failure(fetcher: Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(f"http://127.0.0.1:{port}/", _ticks())
    assert failed.value.status == "connect"


async def test_plain_http_is_no_tls(fetcher: Fetcher) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Failure) as failed:
            await fetcher.fetch(f"https://127.0.0.1:{port}/", _ticks())
    assert failed.value.status == "tls"


async def test_what_a_name_resolves_to_is_checked_where_it_is_connected_to(
    site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(host: str, port: int, *rest: object, **more: object) -> list[object]:
        asked.append(host)
        address = ("127.0.0.1", port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)]

    async with Fetcher() as fetcher:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(Failure, match="private_address"):
            await fetcher.fetch(f"http://public.example:{site.port}/page", _ticks())
    assert asked == ["public.example"]
    assert site.requests == []


async def test_lookups_do_not_wait_for_each_other(
    site: HostileSite, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(40, timeout=5)

    def resolve(host: str, port: int, *rest: object, **more: object) -> list[object]:
        together.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    urls = [f"http://host{i}.example:{site.port}/page" for i in range(40)]
    pages = await asyncio.gather(*(fetcher.fetch(url, _now_us) for url in urls))
    assert all(page.dns_us > 0 for page in pages)


async def test_a_lookup_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *rest, **more: done.wait(5) or [])
    async with Fetcher(FetchLimits(connect_s=0.1)) as fetcher:
        with pytest.raises(Failure, match=r"connect_timeout: over 0\.1 s"):
            await fetcher.fetch("http://slow.example/", _ticks())
    done.set()


async def test_only_the_private_networks_that_are_named_are_fetched(site: HostileSite) -> None:
    async with Fetcher(allow_private=["127.0.0.0/8", "fd00::/8"]) as fetcher:
        assert (await fetcher.fetch(f"{site.url}/page", _now_us)).body == PAGE.encode()
        for host in ("10.0.0.1", "[::1]", "169.254.169.254"):
            with pytest.raises(Failure, match="private_address"):
                await fetcher.fetch(f"http://{host}/", _now_us)
    with pytest.raises(ValueError, match="does not appear to be"):
        Fetcher(allow_private=["intranet"])


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::5db8:d70e", True),
        ("2002:5db8:d70e::1", True),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
        ("2001:0:7f00:1::", False),
        ("fe80::1%eth0", False),
        ("2001:db8::1", False),
        ("192.0.2.1", False),
        ("240.0.0.1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public
    assert AddressRule().permits(address) is public
    assert AddressRule(True).permits(address)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("example.org", None),
        ("localhost.example.org", None),
        ("a.localhost", "127.0.0.1"),
        ("010.0.0.1", "8.0.0.1"),
        ("0xA.1", "10.0.0.1"),
        ("1.2.3.4.", "1.2.3.4"),
        ("[2001:DB8::1]", "2001:db8::1"),
    ],
)
def test_how_hosts_spell_addresses(host: str, address: str | None) -> None:
    assert numeric_address(host) == address
