"""The address at which devices reach the api."""

from pathlib import Path
from typing import Protocol


class AddressSettings(Protocol):
    """The settings that decide it."""

    @property
    def http_public(self) -> str | None: ...
    @property
    def public_host(self) -> str | None: ...
    @property
    def http_port(self) -> int: ...
    @property
    def https_port(self) -> int: ...
    @property
    def tls_cert(self) -> Path | None: ...


def api_address(settings: AddressSettings, host: str) -> str | None:
    """Return the address for a device, None if it is unknown.

    Args:
        settings: Of any role.
        host: The host by which the device reached bootstrap; empty if unknown.
    """
    if settings.http_public is not None:
        return settings.http_public
    named = settings.public_host or host
    tls = settings.tls_cert is not None
    scheme, port = ("https", settings.https_port) if tls else ("http", settings.http_port)
    return f"{scheme}://{named}:{port}" if named and port else None
