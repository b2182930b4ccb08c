"""TCP options against needless delays between broker and client."""

import ctypes
import socket
from typing import Final

_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None)
"""Only Linux has it."""
_LIBC: Final = ctypes.PyDLL(None)
_ON: Final = ctypes.c_int(1)
_ON_ADDRESS, _ON_SIZE = ctypes.byref(_ON), ctypes.sizeof(_ON)


def acknowledge(descriptor: int) -> None:
    """Send TCP acknowledgements at once; to be called after every read, because the kernel resets the option.

    rumqttd, the embedded broker, uses Nagle's algorithm: it delays a message until the previous one is acknowledged,
    and Linux delays acknowledgements by up to 40 ms if nothing is sent back.

    Args:
        descriptor: Of the connection. The socket object of uvloop's transports would cost three times as much.
    """
    if _QUICKACK is not None:
        _LIBC.setsockopt(descriptor, socket.IPPROTO_TCP, _QUICKACK, _ON_ADDRESS, _ON_SIZE)
