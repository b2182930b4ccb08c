"""Whose word is believed about where a request comes from, and which addresses count as one."""

import ipaddress
from collections.abc import Sequence

_SITE_BITS = 64
"""Of an IPv6 address: whoever has one has all that begin so."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """Proxies that tell for whom they ask.

    Args:
        trusted: Addresses or networks, separated by commas; `*` for everybody. What is none of these is nobody's.
    """

    def __init__(self, trusted: str) -> None:
        words = [word.strip() for word in trusted.split(",")]
        self._all = "*" in words
        self._networks = [network for word in words if (network := _read_network(word)) is not None]

    def trusts(self, address: str) -> bool:
        """Whether an address is a proxy's."""
        found = _read(address)
        return found is not None and (self._all or any(found in network for network in self._networks))

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        """Return the address for which a request is: the last in front of the trusted proxies.

        Args:
            peer: Where the connection comes from.
            forwarded: The request's X-Forwarded-For headers.
        """
        client = peer
        for hop in reversed([hop for header in forwarded for hop in header.split(",")]):
            found = _read(hop)
            if not self.trusts(client) or found is None:
                break
            client = str(found)
        return client


def site(address: str) -> str:
    """Return what is limited as one: an IPv4 address, or the network of an IPv6 address."""
    found = _read(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(found), _SITE_BITS), strict=False))
    return address


def _read_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _read(text: str) -> Address | None:
    """Return an address, which may have a port behind it, or brackets around it; None if it is none."""
    text = text.strip().partition("%")[0]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
