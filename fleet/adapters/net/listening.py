"""Sockets that accept TCP connections."""

import socket


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a socket that accepts connections, which send what is written at once.

    asyncio sees to the latter only where the socket's protocol is given by its number, and `create_server` gives none.
    Then the second of two short writes waits for the peer's delayed acknowledgement, up to 40 ms.

    Raises:
        OSError: The address is in use or not this machine's.
    """
    listener = socket.create_server((host, port), backlog=backlog)
    # Accepted connections inherit it (tcp(7)).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
