"""This machine's address."""

import socket

from fleet.ground.settings.tls import LOOPBACK


def own_address() -> str:
    """Return this machine's address towards other networks, or the loopback address if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation range: nothing is sent
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
