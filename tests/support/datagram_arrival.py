"""Datagrams that have arrived when they are sent."""

import socket
import struct
import time

_MEMORY = 55
"""SO_MEMINFO, which Python does not name; the first number that it tells is the memory of what waits to be read."""
_LIMIT_SECONDS = 240.0


def deliver(sender: socket.socket, datagram: bytes, receiver: socket.socket) -> None:
    """Send a datagram to a socket on loopback that has room for it; return when it waits there.

    Mostly that is at once. On a busy machine, the kernel may deliver it only when its own thread gets the processor.
    """
    before, give_up = _waiting(receiver), time.monotonic() + _LIMIT_SECONDS
    sender.sendto(datagram, receiver.getsockname())
    while _waiting(receiver) <= before:
        assert time.monotonic() < give_up, "the datagram was lost"
        time.sleep(0)


def _waiting(receiver: socket.socket) -> int:
    return int(struct.unpack_from("I", receiver.getsockopt(socket.SOL_SOCKET, _MEMORY, 64))[0])
