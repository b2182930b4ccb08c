"""Renew old passwords: ask devices to restart, which makes them fetch a new one, then refuse the old one."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.access.policy import PolicyState, PolicyStore
from fleet.adapters.redis.access.renewals import RenewalPace, Renewals
from fleet.adapters.redis.access.revocations import Revocations
from fleet.ground.errors import FleetError, Overloaded
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.wire.dialects import XIAOZHI
from fleet.wire.restart import restart

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 2.0
RESTARTS: Final = 10
"""Most restarts that one worker asks for in one check of its shards."""
_PAGES = 10
DECIDING_SHARD = 0
"""The worker that owns this shard decides for all shards."""


class PasswordRenewals:
    """Renews the passwords of the devices of the owned shards.

    Args:
        resources: Of the worker.
        owned: Returns the shards that this worker owns now.
    """

    def __init__(self, resources: WorkerResources, owned: Callable[[], Mapping[int, Shard]]) -> None:
        self._renewals = Renewals(resources.store)
        self._policy = PolicyStore(resources.store)
        self._revocations = Revocations(resources.store)
        self._owned = owned
        self.young: dict[int, int] = {}
        """By shard: number of MACs that never connected, at the last check."""

    async def run(self) -> None:
        """Check until cancelled."""
        backoff = Backoff(limit=5.0)
        await keep_running("renewals", lambda: self._repeat(backoff), backoff)

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            state = await self._policy.read()
            left = RESTARTS
            self.young = {number: count for number, count in self.young.items() if number in self._owned()}
            for shard in list(self._owned().values()):
                left -= await self._renew_shard(shard, state, left)
            if DECIDING_SHARD in self._owned():
                await self._refuse_unproved(state)
            backoff.reset()
            await asyncio.sleep(CHECK_SECONDS)

    async def _renew_shard(self, shard: Shard, state: PolicyState, most: int) -> int:
        """Renew passwords in one shard; ask at most `most` devices to restart, and return their number."""
        if not (shard.connected and shard.held):
            return 0
        try:
            look = await self._renewals.look(shard.owner, shard.number, RenewalPace(state.strict, max(most, 0)))
            self.young[shard.number] = look.young
            required = [due for due in look.due if await self._require(state, *due)]
            await self._renewals.settle(shard.owner, shard.number, required)
            for mac in look.ask:
                shard.publish(mac, restart(), XIAOZHI)
                metrics.renewals.add("restart")
                log.info("asked to restart for a new password", extra={"device": mac})
            if state.strict and not look.mark.covers(state.since):
                await self._scan(shard, state)
        except FleetError as error:
            log.warning("passwords not renewed", extra={"shard": shard.number, "reason": str(error)})
            return 0
        return len(look.ask)

    async def _scan(self, shard: Shard, state: PolicyState) -> None:
        for _ in range(_PAGES):
            if await self._renewals.scan(shard.owner, shard.number, state.since):
                return

    async def _require(self, state: PolicyState, mac: str, generation: int) -> bool:
        """Refuse the earlier passwords of a device; return whether that is done."""
        # Passwords of generation 0 prove nothing: `_refuse_unproved` refuses those of all devices together, and an open
        # policy accepts them.
        if generation > 1 or (state.strict and not state.closed):
            try:
                await self._revocations.require(mac, generation)
            except Overloaded:
                metrics.renewals.add("list_full")
                return False
            metrics.renewals.add("refused")
            log.info("earlier passwords refused", extra={"device": mac, "generation": generation})
        return True

    async def _refuse_unproved(self, state: PolicyState) -> None:
        """Refuse unproved passwords of all devices when no device uses one any more, or the time for them is over."""
        if not state.strict or state.closed:
            return
        over = datetime.now(UTC).timestamp() >= state.until
        if not over and await self._renewals.left(state.since) != 0:
            return
        await self._revocations.require_all(1)
        await self._policy.close()
        log.info("passwords that prove nothing are refused")
