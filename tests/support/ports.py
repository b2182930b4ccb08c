"""Free ports on the loopback address.

They are below those that the embedded servers take, which know nothing of what is chosen here, and below those that the
kernel gives to outgoing connections.
"""

import random
import socket

from fleet.workbench.local_servers.ports import claim

LOOPBACK = "127.0.0.1"
_RANGE = range(10_000, 20_000)
_chooser = random.SystemRandom()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port that nobody is bound to now, and that no other process has chosen lately."""
    for _ in range(200):
        port = _chooser.choice(_RANGE)
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            if claim(port):
                return port
    raise RuntimeError("found no free port in 200 attempts")
