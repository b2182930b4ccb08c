"""Allocates free ports to processes that start soon; no two processes get the same port."""

import socket

from fleet.workbench.local_servers.ports import choose

_NEIGHBOURS = 50


class PortAllocator:
    """Allocates ports of the loopback address.

    Args:
        prefer_first: Whether `take` returns the port asked for if it is free; otherwise it returns any free port.
    """

    def __init__(self, *, prefer_first: bool = True) -> None:
        self._prefer_first = prefer_first
        self._allocated: set[tuple[int, socket.SocketKind]] = set()

    def take(self, first: int | None = None, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
        """Return a free port: `first` or one of the next 49 ports, if possible.

        Raises:
            Unavailable: No free port was found.
        """
        port = (self._near(first, kind) if first and self._prefer_first else 0) or choose(kind=kind)
        while (port, kind) in self._allocated:
            port = choose(kind=kind)
        self._allocated.add((port, kind))
        return port

    def release(self, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> None:
        """Release a port."""
        self._allocated.discard((port, kind))

    def _near(self, first: int, kind: socket.SocketKind) -> int:
        for port in range(first, first + _NEIGHBOURS):
            if (port, kind) not in self._allocated and choose(port, kind) == port:
                return port
        return 0
