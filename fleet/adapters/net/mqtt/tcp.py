"""What a TCP connection to the broker needs, so that neither end waits for the other without cause."""

import socket
from typing import Final, Protocol

_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None)
"""Only Linux has it."""


class _Options(Protocol):
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


def acknowledge(connection: _Options) -> None:
    """Acknowledge what was received at once; to be called after every read, for the kernel forgets it.

    rumqttd, the embedded broker, sends with Nagle's algorithm: while a message of its is not acknowledged it holds back
    the next one, and Linux acknowledges up to 40 ms late where nothing is sent back.
    """
    if _QUICKACK is not None:
        connection.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
