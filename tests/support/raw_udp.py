"""UDP datagrams as no socket sends them; needs the right to open raw sockets."""

import socket
import struct

LOOPBACK = "127.0.0.1"


def may_forge() -> bool:
    """Whether this process may open raw sockets."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except OSError:
        return False
    return True


def send_forged(payload: bytes, source_port: int, port: int) -> None:
    """Send a datagram to this machine from a port of one's choice, 0 too."""
    head = struct.pack(">HHHH", source_port, port, 8 + len(payload), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as forger:
        forger.sendto(head + payload, (LOOPBACK, 0))
