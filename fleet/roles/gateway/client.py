"""A client's connection: receives frames, and sends messages with a time limit."""

import asyncio
import logging
from datetime import UTC, datetime

from websockets.exceptions import ConnectionClosed

from fleet.ground.errors import Unavailable
from fleet.roles.gateway.port.connection_limits import SEND_SECONDS
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from fleet.wire.gateway_messages import Message, write

log = logging.getLogger(__name__)


class ClientGone(Unavailable):
    """The client has left, or its connection was closed."""


class Client:
    """One client.

    There is no queue of messages: `send` waits until the client reads. So the memory for a client that does not read is
    bounded.

    Args:
        socket: Its open connection.
        send_seconds: Longest wait of one message.
    """

    def __init__(self, socket: LimitedConnection, send_seconds: float = SEND_SECONDS) -> None:
        self.socket = socket
        """The connection, to close it and to read its properties."""
        self._seconds = send_seconds
        self.address = socket.address
        """Its IP address."""

    async def receive(self) -> bytes | None:
        """Return the next frame, None at the end. Text is returned as UTF-8, as it may take a quarter of the memory."""
        frame = await self.receive_frame()
        return frame.encode() if isinstance(frame, str) else frame

    async def receive_frame(self) -> str | bytes | None:
        """Return the next frame as it is, None at the end."""
        try:
            return await self.socket.recv()
        except ConnectionClosed as closed:
            log.debug("client left", extra={"reason": str(closed)})
            return None

    async def send(self, message: Message) -> None:
        """Send a message of the LLM Gateway API.

        Raises:
            ClientGone: The client has left, or does not read.
        """
        await self.send_frame(write(message, datetime.now(UTC)))

    async def send_frame(self, frame: str | bytes) -> None:
        """Send a frame of another dialect.

        Raises:
            ClientGone: The client has left, or does not read.
        """
        try:
            async with asyncio.timeout(self._seconds):
                await self.socket.send(frame)
        except ConnectionClosed:
            raise ClientGone("the client left") from None
        except TimeoutError:
            log.warning("client does not read", extra={"seconds": self._seconds})
            self.socket.end("not read")
            raise ClientGone("the client does not read") from None

    def cut(self) -> None:
        """End the connection at once."""
        self.socket.transport.abort()
