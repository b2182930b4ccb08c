"""Chooses ports of the loopback address for a server that starts soon."""

import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from fleet.ground.errors import Unavailable

LOOPBACK = "127.0.0.1"
_BELOW_EPHEMERAL = range(10_000, 32_000)
"""The kernel does not use these for outgoing connections."""
_ATTEMPTS = 200


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports at which devices reach the server."""

    mqtt: int
    udp: int
    http: int


def choose_ports() -> Ports:
    """Return the default ports if they are free, else others."""
    return Ports(
        mqtt=choose(1883),
        udp=choose(8884, socket.SOCK_DGRAM),
        http=choose(8000),
    )


def choose(wanted: int | None = None, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return the wanted port if it is free, else a random free port.

    Raises:
        Unavailable: No free port was found.
    """
    tries: Iterable[int] = random.sample(_BELOW_EPHEMERAL, _ATTEMPTS)
    for port in ([wanted] if wanted else []) + list(tries):
        if _free(port, kind):
            return port
    raise Unavailable(f"no free port among {_ATTEMPTS} that were tried")


def accepts(port: int) -> bool:
    """Return whether something accepts connections on a loopback port now."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def _free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_STREAM:
            # Connections of an earlier run in TIME_WAIT do not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
