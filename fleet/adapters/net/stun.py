"""A STUN client: finds the public address of a local UDP port."""

import asyncio
import secrets
import socket

from fleet.ground.errors import ConfigError, Unavailable
from fleet.wire.stun import TRANSACTION_BYTES, MappedAddress, StunRefused, build_request, read_response

STUN_PORT = 3478
LIMIT_SECONDS = 8.0
FIRST_WAIT_SECONDS = 0.5
"""RFC 5389, section 7.2.1: the request is sent again after this time, and after twice as long each next time."""

_LARGEST = 2048


async def ask_stun(
    server: tuple[str, int],
    local: tuple[str, int],
    *,
    limit: float = LIMIT_SECONDS,
    first_wait: float = FIRST_WAIT_SECONDS,
) -> MappedAddress:
    """Return the public address of a local port, which no other socket may have open meanwhile.

    Args:
        server: Host (name or IPv4 address) and port.
        local: Local address and port.
        limit: Seconds for all attempts.
        first_wait: Seconds after which the request is sent a second time.

    Raises:
        ConfigError: The local port is taken.
        Unavailable: The name cannot be resolved, or there is no usable answer.
    """
    name = f"STUN server {server[0]}:{server[1]}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        try:
            sock.bind(local)
        except OSError as error:
            raise ConfigError(f"cannot ask from UDP port {local[1]}: {error.strerror}") from error
        try:
            async with asyncio.timeout(limit):
                return await _ask(sock, await _resolve(server), name, first_wait)
        except TimeoutError:
            raise Unavailable(f"{name} does not answer") from None
        except OSError as error:
            raise Unavailable(f"{name}: {error.strerror or error}") from error


async def _resolve(server: tuple[str, int]) -> tuple[str, int]:
    found = await asyncio.get_running_loop().getaddrinfo(*server, family=socket.AF_INET, type=socket.SOCK_DGRAM)
    return str(found[0][4][0]), server[1]


async def _ask(sock: socket.socket, server: tuple[str, int], name: str, wait: float) -> MappedAddress:
    loop, transaction = asyncio.get_running_loop(), secrets.token_bytes(TRANSACTION_BYTES)
    # Connected, so that the kernel drops packets from other senders.
    sock.connect(server)
    while True:
        await loop.sock_sendall(sock, build_request(transaction))
        try:
            async with asyncio.timeout(wait):
                return await _answer(sock, transaction, name)
        except TimeoutError:
            wait *= 2


async def _answer(sock: socket.socket, transaction: bytes, name: str) -> MappedAddress:
    loop = asyncio.get_running_loop()
    while True:
        answer = read_response(await loop.sock_recv(sock, _LARGEST), transaction)
        if isinstance(answer, StunRefused):
            raise Unavailable(f"{name} refuses with code {answer.code}")
        if answer is not None:
            return answer
