"""Where the server of a crowd is, and from which address each device comes."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from fleet.ground.errors import ConfigError

DEVICES_OF_ADDRESS = 50
"""A household is smaller, a factory larger; limits of the server are for each address."""
_FIRST_ADDRESS = int(ipaddress.IPv4Address("127.16.0.1"))


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address, as it stands in a URL."""

    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> "Place":
        """Read a URL; only HTTP without TLS.

        Raises:
            ConfigError: It is another one.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ConfigError(f"a crowd speaks only http:// to a host, not {url!r}")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.hostname, parts.port or 80, path)

    @property
    def is_loopback(self) -> bool:
        return self.host.startswith("127.") or self.host == "localhost"


def source_of(number: int) -> str:
    """Return the loopback address of a device: a crowd on one machine has many, as devices have."""
    return str(ipaddress.IPv4Address(_FIRST_ADDRESS + number // DEVICES_OF_ADDRESS))
