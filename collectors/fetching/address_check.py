"""Which hosts may be connected to: those of the public internet, unless private ones are allowed.

The check is made where a socket is made, of the very address that it is then connected to. So a
name that resolves differently a moment later, or any spelling of an address, changes nothing.
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any, Final

from s2l.collectors import failure
from s2l.collectors.failure import Failure

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Ranges of IPv6 whose last 32 bits are an IPv4 address that a gateway may connect to (RFC 6052,
# RFC 8215, and the deprecated IPv4-compatible addresses of RFC 4291).
_WITH_IPV4_AT_END: Final = tuple(
    ipaddress.IPv6Network(network) for network in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")
)
# Answers inside one cloud's machines only, though the range is public by registration.
_CLOUD_METADATA: Final = frozenset({ipaddress.IPv4Address("168.63.129.16")})


def is_public(address: str) -> bool:
    """Whether a numeric address, with or without an IPv6 zone, is one of the public internet.

    Raises:
        ValueError: it is not an address.
    """
    given = ipaddress.ip_address(address)
    return all(_is_public(one) for one in [given, *_inner(given)])


def _is_public(address: IPAddress) -> bool:
    return address.is_global and not address.is_multicast and address not in _CLOUD_METADATA


def _inner(address: IPAddress) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for or tunnels to."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    bare = ipaddress.IPv6Address(int(address))
    if any(bare in network for network in _WITH_IPV4_AT_END):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in inner if one is not None]


def numeric_address(host: str) -> str | None:
    """The address that a host part spells, in any notation that a resolver takes; None: a name.

    Names of this machine (RFC 6761) are its address, whatever a resolver knows of them.
    """
    bare = host.strip("[]")
    if f".{bare.rstrip('.').lower()}".endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    try:
        # Decimal, octal, hexadecimal and short forms, as in 2130706433, 0177.1 and 0x7f000001.
        return socket.inet_ntoa(socket.inet_aton(bare.rstrip(".")))
    except (OSError, UnicodeError):
        return None


class AddressRule:
    """Public addresses are permitted, and those of the private networks given (CIDR).

    ``private`` True permits all, False none.

    Raises:
        ValueError: something in ``private`` is not a network.
    """

    def __init__(self, private: bool | Sequence[str] = False) -> None:
        self._all = private is True
        given = () if isinstance(private, bool) else private
        self._networks = tuple(ipaddress.ip_network(network) for network in given)

    def permits(self, address: str) -> bool:
        """Whether a numeric address may be connected to."""
        if self._all or is_public(address):
            return True
        given = ipaddress.ip_address(address)
        return any(given in network for network in self._networks)

    def check_host(self, host: str) -> None:
        """Refuse a numeric host that is not permitted, before anything is connected.

        Raises:
            Failure: ``private_address``.
        """
        address = numeric_address(host)
        if address is not None:
            self._check(address)

    def socket(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """A socket for an address as ``getaddrinfo`` gives it, if that is permitted.

        Raises:
            Failure: ``private_address``.
        """
        family, kind, protocol, _, address = addr_info
        self._check(str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    def _check(self, address: str) -> None:
        if not self.permits(address):
            raise Failure(
                failure.PRIVATE_ADDRESS,
                f"{address} is not a public address; private ones are fetched only if allowed",
            )
