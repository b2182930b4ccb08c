"""A client's connection: frames in, messages out, each with a limit in time."""

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
    """The client is gone, or was cut off."""


class Client:
    """One client.

    No message waits in a queue: who sends waits for the client, so that what a client does not read is bounded.

    Args:
        socket: Its connection, open.
        send_seconds: Longest wait of one message.
    """

    def __init__(self, socket: LimitedConnection, send_seconds: float = SEND_SECONDS) -> None:
        self.socket = socket
        """For what concerns the connection as such."""
        self._seconds = send_seconds
        self.address = socket.address
        """Its IP address."""

    async def receive(self) -> bytes | None:
        """Return the next frame, None at the end; text as UTF-8, which takes a quarter of the memory at best."""
        try:
            frame = await self.socket.recv()
            return frame.encode() if isinstance(frame, str) else frame
        except ConnectionClosed as closed:
            log.debug("client left", extra={"reason": str(closed)})
            return None

    async def send(self, message: Message) -> None:
        """Say something.

        Raises:
            Gone: The client is gone, or does not read.
        """
        await self.send_text(write(message, datetime.now(UTC)))

    async def send_text(self, text: str) -> None:
        """Send a frame of another dialect.

        Raises:
            Gone: The client is gone, or does not read.
        """
        try:
            async with asyncio.timeout(self._seconds):
                await self.socket.send(text)
        except ConnectionClosed:
            raise ClientGone("the client left") from None
        except TimeoutError:
            log.warning("client does not read", extra={"seconds": self._seconds})
            self.socket.end("not read")
            raise ClientGone("the client does not read") from None

    def cut(self) -> None:
        """End the connection at once."""
        self.socket.transport.abort()
