"""Devices that register their tools themselves."""

import asyncio
import logging
from collections import Counter

from fleet.core.rates import Buckets, Rate
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.wire.jsonrpc import BAD_PARAMS, SERVER_ERROR
from fleet.wire.messages import BadRequestEvent, ErrorCommand, RegisteredCommand, RegisterToolsEvent

log = logging.getLogger(__name__)


class Registrations:
    """Stores registered tools and answers the requests.

    Args:
        resources: Of the worker.
        discovery: Is stopped for a device that registers its tools.
        counts: Count refusals.
    """

    def __init__(self, resources: WorkerResources, discovery: Discovery, counts: Counter[str]) -> None:
        self._resources = resources
        self._discovery = discovery
        self._counts = counts
        self._rate = Buckets(Rate.parse(resources.settings.rate_hellos))

    async def register(self, shard: Shard, mac: str, asked: RegisterToolsEvent, dialect: str) -> None:
        """Replace a device's tools, and confirm it in the dialect of the request.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis or the broker is away; a retry is safe.
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
        """Answer a bad request with its error, in the dialect of the request.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: The broker is away.
        """
        self._counts[f"registrar: {refusal.code}"] += 1
        log.warning("request rejected", extra={"code": refusal.code, "pii": {"reason": refusal.reason}})
        shard.publish(mac, ErrorCommand(refusal.id, refusal.code, refusal.reason), dialect)

    def _refuse(self, mac: str, asked: RegisterToolsEvent) -> BadRequestEvent | None:
        # The broker lets a device publish on its own topic only, so the topic's MAC is proved.
        if asked.mac not in (None, mac):
            return BadRequestEvent(
                asked.id, BAD_PARAMS, "params.mac_addr is not the MAC of the device that is connected"
            )
        wait = self._rate.take(mac, asyncio.get_running_loop().time())
        return (
            BadRequestEvent(asked.id, SERVER_ERROR, f"too many registrations; come again in {wait:.0f} s")
            if wait
            else None
        )
