"""The policy of all apis, and until when unproved passwords are valid.

A password that was issued under an open policy, or by a version without generations, proves nothing about its holder.
When the first api starts under another policy, such passwords stay valid for a while, so that devices can fetch new
ones; then they are refused.
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
    """The current policy; times in seconds since 1970, 0 for none.

    `since` is when the replacement of unproved passwords began, `until` when they become invalid, `closed` whether they
    are invalid now.
    """

    policy: str
    since: int
    until: int
    closed: bool

    @property
    def strict(self) -> bool:
        """Whether unproved passwords are invalid, now or at `until`."""
        return self.since > 0


class PolicyStore:
    """Reads and changes the policy. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self) -> PolicyState:
        found = self._store.client.hgetall(_KEY)
        record = await self._store.ask(cast("Awaitable[dict[str, str]]", found))
        since, _, until = record.get("replaced", "0 0").partition(" ")
        return PolicyState(record.get("policy", ""), int(since), int(until), bool(record.get("closed")))

    async def begin(self, policy: Policy, now: float, grace_seconds: float) -> None:
        """Set the policy. Under one that is not open, unproved passwords stay valid for `grace_seconds`.

        Nothing changes if it is the policy already; every api calls this at its start.
        """
        before = await self.read()
        if policy == "open":
            if before.policy not in ("", "open"):
                fields = {"was": before.policy, "refused_before": before.closed, "advice": _ADVICE}
                log.warning("passwords that prove nothing count again", extra=fields)
            await self._open()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(_KEY, "policy", policy)
        if policy == "open":
            pipe.hdel(_KEY, "replaced", "closed")
        else:
            pipe.hsetnx(_KEY, "replaced", f"{int(now)} {int(now + grace_seconds)}")
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        if before.policy == "open" and policy != "open":
            await self._outdate(int(now + grace_seconds))

    async def close(self) -> None:
        """Record that unproved passwords are refused now."""
        await self._store.ask(self._store.client.hset(_KEY, "closed", "1"))

    async def _open(self) -> None:
        """Make unproved passwords valid. A minimum generation above 1 of a device stays in force."""
        revocations = Revocations(self._store)
        minima = await revocations.minima()
        if any(generation == 1 for generation in minima.macs.values()):
            # Only this removes the minima of 1 from the list.
            await revocations.require_all(1)
        await revocations.require_all(0)

    async def _outdate(self, until: int) -> None:
        """Require new passwords of the devices whose generation was issued under the open policy, to any client."""
        minima = await Revocations(self._store).minima()
        admissions = Admissions(self._store)
        for mac, generation in minima.macs.items():
            if generation > 1:
                await admissions.renew(mac, until)
