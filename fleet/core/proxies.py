"""Trusted proxies, and networks of addresses that share one limit."""

import ipaddress
from collections.abc import Sequence

_SITE_BITS = 64
"""Prefix length of an IPv6 site: one customer usually has all its addresses."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """Proxies whose X-Forwarded-For header is trusted.

    Args:
        trusted: Addresses or networks, separated by commas; `*` for all. Other words are ignored.
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
        """Return the client's address: the last one before the trusted proxies.

        Args:
            peer: The address of the connection.
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
    """Return the unit that limits count: an IPv4 address, or the network of an IPv6 address."""
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
    """Return an address, with or without port and brackets; None if the text is not an address."""
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
