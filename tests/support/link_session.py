"""Running sessions of fleet.adapters.net in tests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fleet.adapters.net.mqtt.session import MqttSession
from fleet.wire.identity import Credentials

PATIENCE = 240.0


def who(client_id: str) -> Credentials:
    """Return credentials for a broker that lets everybody in."""
    return Credentials(client_id, "service.test", "anything")


@asynccontextmanager
async def running(session: MqttSession) -> AsyncIterator[asyncio.Task[None]]:
    """Run a session until it is ready, then the block, then cancel it; the task may have ended by itself."""
    ready = asyncio.Event()
    task = asyncio.create_task(session.run(ready.set))
    waiter = asyncio.create_task(ready.wait())
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield task
    finally:
        waiter.cancel()
        task.cancel()
        await asyncio.wait({task, waiter}, timeout=PATIENCE)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


class Recorder:
    """A handler that notes what it was called with, and may be told to wait.

    Args:
        work: Awaited for every message after it was noted.
    """

    def __init__(self, work: Callable[[bytes], Awaitable[None]] | None = None) -> None:
        self._work = work
        self.seen: list[bytes] = []
        self.running = 0
        self.most = 0

    async def __call__(self, topic: str, payload: bytes) -> None:
        self.seen.append(payload)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self._work:
                await self._work(payload)
        finally:
            self.running -= 1
