"""Which policy the apis serve under, and until when passwords count that prove nothing.

Passwords that were issued under an open policy, or by a version before generations, prove nothing about who holds them.
When the first api starts under another policy they count on for a while, so that devices can fetch new ones; then none
does.
"""

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.core.admission import Policy

log = logging.getLogger(__name__)

_KEY = "{admission}:policy"
_ADVICE = (
    "anybody gets passwords now, and earlier ones that proved nothing are good again; after the return to another "
    "policy they count until FLEET_RENEWAL_DAYS are over, or `fleet devices renew --now`"
)


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What counts now; times in seconds since 1970, 0 for none.

    `since` is when unproved passwords began to be replaced, `until` when they count no longer, `closed` whether they
    do not any more.
    """

    policy: str = ""
    since: int = 0
    until: int = 0
    closed: bool = False

    @property
    def strict(self) -> bool:
        """Whether passwords have to prove something, sooner or later."""
        return self.since > 0


class PolicyStore:
    """Reads and changes it. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self) -> PolicyState:
        found = self._store.client.hgetall(_KEY)
        record = await self._store.ask(cast("Awaitable[dict[str, str]]", found))
        since, _, until = record.get("replaced", "0 0").partition(" ")
        return PolicyState(record.get("policy", ""), int(since), int(until), bool(record.get("closed")))

    async def begin(self, policy: Policy, now: float, patience: float) -> None:
        """Serve under a policy from now on; under one that is not open unproved passwords count for `patience` seconds.

        Nothing changes where it is the policy already: several apis begin, and each begins again.
        """
        before = await self.read()
        if policy == "open":
            if before.policy not in ("", "open"):
                told = {"was": before.policy, "refused_before": before.closed, "advice": _ADVICE}
                log.warning("passwords that prove nothing count again", extra=told)
            await self._open()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(_KEY, "policy", policy)
        if policy == "open":
            pipe.hdel(_KEY, "replaced", "closed")
        else:
            pipe.hsetnx(_KEY, "replaced", f"{int(now)} {int(now + patience)}")
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        if before.policy == "open" and policy != "open":
            await self._outdate(int(now + patience))

    async def close(self) -> None:
        """Write down that unproved passwords are refused now."""
        await self._store.ask(self._store.client.hset(_KEY, "closed", "1"))

    async def _open(self) -> None:
        """Let unproved passwords count. Where earlier passwords of a device were cut, they stay cut."""
        revocations = Revocations(self._store)
        minima = await revocations.minima()
        if any(generation == 1 for generation in minima.macs.values()):
            # Takes these off the list, which nothing else does.
            await revocations.require_all(1)
        await revocations.require_all(0)

    async def _outdate(self, until: int) -> None:
        """Want new passwords of the devices that were given a generation under the open policy, which anybody got."""
        minima = await Revocations(self._store).minima()
        admissions = Admissions(self._store)
        for mac, generation in minima.macs.items():
            if generation > 1:
                await admissions.renew(mac, until)
