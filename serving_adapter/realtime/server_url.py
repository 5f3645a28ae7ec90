"""Addresses of servers, checked before anything is sent there."""

from urllib.parse import urlsplit


def check_url(url: str) -> str:
    """The address of a server, checked.

    Raises:
        ValueError: it is not an ``http://`` or ``https://`` address with a host.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ValueError("credentials do not belong into the address; set S2L_API_KEY")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not a server address; write http://HOST:PORT")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{url!r} has no valid port; write http://HOST:PORT") from None
    return url
