"""Calls of a client's tools that wait for their results."""

import asyncio
import uuid

from pydantic import JsonValue

from fleet.roles.gateway.client import Client
from fleet.wire.gateway import ToolAnswer
from fleet.wire.gateway_messages import ToolCallback


class Callbacks:
    """The pending calls of one connection.

    Args:
        peer: The client.
        seconds: Longest wait for a result after the callback.
        most: Most pending calls; the caller respects it.
    """

    def __init__(self, peer: Client, seconds: float, most: int) -> None:
        self._peer = peer
        self._seconds = seconds
        self.most = most
        self._waiting: dict[str, asyncio.Future[ToolAnswer]] = {}

    async def call(self, name: str, arguments: dict[str, JsonValue]) -> ToolAnswer | None:
        """Ask the client to run a tool; return its answer, None if there was none in time.

        Raises:
            ClientGone: The client has left.
        """
        call_id = str(uuid.uuid4())
        # Registered before the message is sent, because the client may answer at once.
        waiter: asyncio.Future[ToolAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = waiter
        try:
            await self._peer.send(ToolCallback(call_id=call_id, tool_name=name, arguments=arguments))
            async with asyncio.timeout(self._seconds):
                return await waiter
        except TimeoutError:
            return None
        finally:
            del self._waiting[call_id]

    def settle(self, answer: ToolAnswer) -> bool:
        """Take an answer; return False if no call waits for it: it is late, repeated, or for another client's call."""
        waiter = self._waiting.get(answer.call_id)
        if waiter is None or waiter.done():
            return False
        waiter.set_result(answer)
        return True
