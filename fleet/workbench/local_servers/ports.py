"""Chooses ports of the loopback address for a server that starts soon."""

import os
import random
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.errors import Unavailable

LOOPBACK = "127.0.0.1"
_BELOW_EMBEDDED = range(10_000, 20_000)
"""Neither the embedded servers (`fleet.run.embedded.child`) nor the kernel, for outgoing connections, use these."""
_ATTEMPTS = 200
_CLAIMED_SECONDS = 600.0
"""So long no other process chooses a port that one has chosen: on a busy machine its server may begin late."""


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
    if wanted and _free(wanted, kind):
        return wanted
    for port in random.sample(_BELOW_EMBEDDED, _ATTEMPTS):
        if _free(port, kind) and claim(port):
            return port
    raise Unavailable(f"no free port among {_ATTEMPTS} that were tried")


def claim(port: int) -> bool:
    """Return whether no process has chosen a port lately; nobody else will do so for ten minutes."""
    path = Path(tempfile.gettempdir(), f"fleet-ports-{os.getuid()}", str(port))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.exists() and time.time() - path.stat().st_mtime > _CLAIMED_SECONDS:
            path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True  # Nothing can be written here: then two may choose the same.
    return True


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
