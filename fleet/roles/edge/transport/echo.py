"""Answer echo requests, by which `fleet doctor` tests the UDP path (`fleet.wire.echo`)."""

from fleet.roles.edge.transport.socket import Address, AudioSocket
from fleet.wire import echo

MOST = 16
"""Echo requests that are answered in one session: `fleet doctor` sends up to eight."""


class EchoResponder:
    """Answers a bounded number of echo requests in one session.

    Args:
        key: Of the session, 32 hex digits.
        socket: Sends.
    """

    __slots__ = ("_key", "_left", "_socket")

    def __init__(self, key: str, socket: AudioSocket) -> None:
        self._key = key
        self._left = MOST
        self._socket = socket

    def take(self, datagram: bytes, address: Address) -> None:
        """Answer a datagram with the flag of a request if it is valid under the session's key; ignore others."""
        if self._left and (answer := echo.answer(bytes.fromhex(self._key), datagram)):
            self._left -= 1
            self._socket.send(answer, address)
