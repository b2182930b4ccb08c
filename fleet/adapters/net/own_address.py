"""This machine's address."""

import socket

from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.ground.settings.tls import LOOPBACK


def own_address() -> str:
    """Return this machine's address towards other networks, or the loopback address if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation range: nothing is sent
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])


def ota_url(public_host: str | None, listening: str, port: int, *, tls: bool) -> str:
    """Return the address of the api that is entered into devices.

    Args:
        public_host: FLEET_PUBLIC_HOST.
        listening: Where the api listens.
        port: Of the api for devices.
        tls: Whether that port has TLS.
    """
    host = public_host or (own_address() if listening == ANY_ADDRESS else listening)
    return f"{'https' if tls else 'http'}://{host}:{port}/xiaozhi/ota/"
