"""TCP options against needless delays between broker and client."""

import socket
from typing import Final, Protocol

_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None)
"""Only Linux has it."""


class _Options(Protocol):
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


def acknowledge(connection: _Options) -> None:
    """Send TCP acknowledgements at once; to be called after every read, because the kernel resets the option.

    rumqttd, the embedded broker, uses Nagle's algorithm: it delays a message until the previous one is acknowledged,
    and Linux delays acknowledgements by up to 40 ms if nothing is sent back.
    """
    if _QUICKACK is not None:
        connection.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
