"""Connections wait until somebody reads what devices send."""

import asyncio
from collections.abc import Callable
from typing import Final

from fleet.roles.front.proxied_connection import ProxiedConnection

LOOK_SECONDS: Final = 0.05


class ReaderWait:
    """One look serves all connections: after a restart thousands wait, in the process that the readers start in.

    Args:
        is_read: Returns whether somebody reads. It depends on all shards, so there is no single event.
    """

    def __init__(self, is_read: Callable[[], bool]) -> None:
        self._is_read = is_read
        self._waiting: dict[ProxiedConnection, None] = {}
        self._looks = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, connection: ProxiedConnection) -> bool:
        """Wait until somebody reads; return False if the connection has ended."""
        if self._is_read():
            return True
        self._waiting[connection] = None
        self._look_later()
        try:
            await connection.wait_for(self._is_read)
        finally:
            del self._waiting[connection]
        return not connection.reason

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks = False
        if self._is_read():
            for connection in self._waiting:
                connection.wake()
        if self._waiting:
            self._look_later()
