"""Answering whoever asks under a session's key whether audio gets through (`fleet.wire.echo`)."""

from fleet.roles.edge.transport.socket import Address, AudioSocket
from fleet.wire import echo

MOST = 16
"""Genuine questions of a session that are answered: `fleet doctor` asks up to eight times."""


class EchoResponder:
    """Answers the questions of one session, a bounded number of them.

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
        """Answer a datagram with the flag of a question, if it is a genuine one; nobody else is sent anything."""
        if self._left and (answer := echo.answer(bytes.fromhex(self._key), datagram)):
            self._left -= 1
            self._socket.send(answer, address)
