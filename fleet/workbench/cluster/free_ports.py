"""Free ports for processes that start soon; none is used twice."""

import socket

from fleet.workbench.local_servers.ports import choose

_NEIGHBOURS = 50


class FreePorts:
    """Gives ports of the loopback address.

    Args:
        usual: Whether the usual ones are given where they are free; else any.
    """

    def __init__(self, *, usual: bool = True) -> None:
        self._usual = usual
        self._given: set[tuple[int, socket.SocketKind]] = set()

    def take(self, first: int | None = None, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
        """Return a free port: `first` or one of its neighbours above it if possible.

        Raises:
            Unavailable: None was found.
        """
        port = (self._near(first, kind) if first and self._usual else 0) or choose(kind=kind)
        while (port, kind) in self._given:
            port = choose(kind=kind)
        self._given.add((port, kind))
        return port

    def give_back(self, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> None:
        """Release a port."""
        self._given.discard((port, kind))

    def _near(self, first: int, kind: socket.SocketKind) -> int:
        for port in range(first, first + _NEIGHBOURS):
            if (port, kind) not in self._given and choose(port, kind) == port:
                return port
        return 0
