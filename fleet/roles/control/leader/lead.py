"""Runs the work in the background on one process of control at a time."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from fleet.adapters.redis.shards.control_lease import ControlLease
from fleet.ground.errors import FleetError
from fleet.ground.tasks import Backoff, isolate, keep_running, running

log = logging.getLogger(__name__)

LEASE_SECONDS = 6.0
"""As that of a worker: after its leader was killed, control stands still for so long, and a third of it."""
_RENEWALS = 3
"""Renewals in the life of a lease."""
LONGEST_PAUSE = 2.0
"""Seconds until a part that failed begins again."""


@dataclass(frozen=True, slots=True)
class BackgroundPart:
    """Work that one process does; `run` gets the fence of the lease, and is cancelled when the lease is lost."""

    name: str
    run: Callable[[str], Coroutine[None, None, None]]


class Leader:
    """Holds the lease while it can, and runs the parts while it holds it.

    Args:
        lease: Of this process.
        parts: A part that fails begins again after a pause.
    """

    def __init__(self, lease: ControlLease, parts: Sequence[BackgroundPart]) -> None:
        self._lease, self._parts = lease, parts
        self._pause = lease.seconds / _RENEWALS

    async def run(self) -> None:
        """Run until cancelled; then give the lease back."""
        while True:
            fence = await self._take()
            if fence is None:
                await asyncio.sleep(self._pause)
            else:
                await self._lead(fence)

    async def _take(self) -> str | None:
        try:
            return await self._lease.take()
        except FleetError as error:
            log.warning("cannot ask for the lease of control", extra={"reason": str(error)})
            return None

    async def _lead(self, fence: str) -> None:
        log.info("this process leads", extra={"fence": fence})
        try:
            async with AsyncExitStack() as stack:
                for part in self._parts:
                    await stack.enter_async_context(running(part.name, self._work(part, fence)))
                await self._hold(fence)
            log.warning("this process no longer leads")
        finally:
            await self._give_back()

    def _work(self, part: BackgroundPart, fence: str) -> Callable[[], Coroutine[None, None, None]]:
        async def attempt() -> None:
            # A fault in one part must end neither the others nor the API.
            await isolate(part.name, part.run(fence))

        return lambda: keep_running(part.name, attempt, Backoff(limit=LONGEST_PAUSE))

    async def _hold(self, fence: str) -> None:
        """Renew the lease until it is lost, or until another process may have it."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._lease.seconds
        while True:
            await asyncio.sleep(self._pause)
            begun = clock()
            try:
                async with asyncio.timeout_at(until):
                    if not await self._lease.renew(fence):
                        return
                until = begun + self._lease.seconds
            except (FleetError, TimeoutError) as error:
                if clock() + self._pause >= until:
                    return
                log.warning("cannot renew the lease of control", extra={"reason": str(error)})

    async def _give_back(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._lease.release()
        except (FleetError, TimeoutError) as error:
            log.info("the lease of control ends by itself", extra={"reason": str(error)})
