"""Devices that register their tools themselves."""

import asyncio
import logging
from collections import Counter

from fleet.core.rates import Buckets, Rate
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.wire.jsonrpc import BAD_PARAMS, UNABLE
from fleet.wire.messages import BadRequestEvent, ErrorCommand, RegisteredCommand, RegisterToolsEvent

log = logging.getLogger(__name__)


class Registrations:
    """Answers registrations.

    Args:
        resources: What it works with.
        discovery: Asks devices for their tools; it stops for a device that registers them.
        counts: Counts what is refused.
    """

    def __init__(self, resources: WorkerResources, discovery: Discovery, counts: Counter[str]) -> None:
        self._resources = resources
        self._discovery = discovery
        self._counts = counts
        self._rate = Buckets(Rate.parse(resources.settings.rate_hellos))

    async def register(self, shard: Shard, mac: str, asked: RegisterToolsEvent, dialect: str) -> None:
        """Keep a device's tools in place of those that it had, and confirm it in the dialect of the request.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis or the broker is away; it can be done again.
        """
        refusal = self._refuse(mac, asked)
        if refusal is not None:
            self.reject(shard, mac, refusal, dialect)
            return
        await self._resources.tools.register(shard.owner, mac, dialect, asked.tools)
        self._discovery.stop(mac)
        log.info("tools registered", extra={"tools": len(asked.tools), "provided": len(asked.provided)})
        shard.publish(mac, RegisteredCommand(asked.id, asked.provided), dialect)

    def reject(self, shard: Shard, mac: str, refusal: BadRequestEvent, dialect: str) -> None:
        """Answer a request that cannot be done with its error, in the dialect of the request.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: The broker is away.
        """
        self._counts[f"registrar: {refusal.code}"] += 1
        log.warning("request rejected", extra={"code": refusal.code, "pii": {"reason": refusal.reason}})
        shard.publish(mac, ErrorCommand(refusal.id, refusal.code, refusal.reason), dialect)

    def _refuse(self, mac: str, asked: RegisterToolsEvent) -> BadRequestEvent | None:
        # The broker lets a device publish on its own topic only, so whose message it is was proved.
        if asked.mac not in (None, mac):
            return BadRequestEvent(
                asked.id, BAD_PARAMS, "params.mac_addr is not the MAC of the device that is connected"
            )
        wait = self._rate.take(mac, asyncio.get_running_loop().time())
        return (
            BadRequestEvent(asked.id, UNABLE, f"too many registrations; come again in {wait:.0f} s") if wait else None
        )
