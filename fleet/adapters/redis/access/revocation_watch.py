"""Follows the list of refused credentials."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from fleet.adapters.redis.access.revocations import ListVersion, Revocations, RevocationStep
from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.identity import Minima

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Polling interval; a change must be in force everywhere within five seconds."""


@dataclass(frozen=True, slots=True)
class Access:
    """The refused credentials: revoked devices, and minimum generations."""

    revoked: frozenset[str] = frozenset()
    minima: Minima = field(default_factory=Minima)


@dataclass(frozen=True, slots=True)
class Change:
    """Devices whose credentials may be refused now: revoked ones, and MACs whose minimum rose.

    `everyone`: the minimum of all rose, or the whole list was read again, so every connection has to be checked.
    """

    revoked: frozenset[str]
    raised: frozenset[str]
    everyone: bool


OnChange = Callable[[Access, Change], Awaitable[None]]


class RevocationWatch:
    """Reports every change of the list, first at its start. While Redis is away the last state stays in force.

    It also stays in force if Redis lost the list, or restored an older one: a loss never lifts a revocation.

    Args:
        revocations: The list.
        on_change: Called with each change; called again with the same one if it failed.
    """

    def __init__(self, revocations: Revocations, on_change: OnChange) -> None:
        self._revocations = revocations
        self._on_change = on_change
        self._known = Access()
        self._version: ListVersion | None = None
        self._backoff = Backoff(limit=LOOK_SECONDS)

    async def run(self) -> None:
        """Watch until cancelled."""
        await keep_running("revocations", self._watch, self._backoff)

    async def look(self) -> None:
        """Look once.

        Raises:
            Unavailable: Redis did not answer.
        """
        newest = await self._revocations.version()
        if newest == self._version:
            return
        newest, access, change = await self._follow(newest)
        await self._on_change(access, change)
        self._known, self._version = access, newest

    async def _follow(self, newest: ListVersion) -> tuple[ListVersion, Access, Change]:
        """Return a version, the list (at least as new as that version), and the change."""
        if self._version is not None and newest.version > self._version.version:
            steps = await self._revocations.since(self._version)
            if follows(self._version, steps, newest):
                return steps[-1].after, *applied(self._known, steps)
        access = Access(await self._revocations.read(), await self._revocations.minima())
        if self._version is not None and newest.version <= self._version.version:
            log.error(
                "the list of revoked devices was lost in Redis; what was known stays in force until this restarts",
                extra={"revoked": len(self._known.revoked), "minima": len(self._known.minima.macs)},
            )
            access = united(self._known, access)
        return newest, access, Change(access.revoked - self._known.revoked, frozenset(), everyone=True)

    async def _watch(self) -> None:
        while True:
            await self.look()
            self._backoff.reset()
            await asyncio.sleep(LOOK_SECONDS)


def follows(known: ListVersion, steps: Sequence[RevocationStep], newest: ListVersion) -> bool:
    """Return whether these changes lead from the known version to the newest, and can be applied one by one.

    They are incomplete if the bounded log lost some, or if an older version of fleet, which writes no log, made some.
    A lowered default cannot be applied: the removed minima of single MACs are known only from the whole list.
    """
    versions = [step.after.version for step in steps]
    whole = versions == list(range(known.version + 1, known.version + 1 + len(steps)))
    return (
        whole
        and known.version + len(steps) >= newest.version
        and not any(step.what == "require_all" and not step.generation for step in steps)
    )


def applied(access: Access, steps: Sequence[RevocationStep]) -> tuple[Access, Change]:
    """Return the list after some changes, and the devices whose credentials they refuse."""
    revoked, default, macs = set(access.revoked), access.minima.default, dict(access.minima.macs)
    for step in steps:
        match step.what:
            case "revoke":
                revoked.add(step.mac)
            case "unrevoke":
                revoked.discard(step.mac)
            case "require":
                macs[step.mac] = max(step.generation, macs.get(step.mac, 0))
            case _:
                default = step.generation
                macs = {mac: generation for mac, generation in macs.items() if generation > default}
    change = Change(
        frozenset(step.mac for step in steps if step.what == "revoke"),
        frozenset(step.mac for step in steps if step.what == "require"),
        default > access.minima.default,
    )
    return Access(frozenset(revoked), Minima(default, macs)), change


def united(one: Access, other: Access) -> Access:
    """Return a list that refuses everything that one of both refuses."""
    macs = dict(one.minima.macs)
    for mac, generation in other.minima.macs.items():
        macs[mac] = max(generation, macs.get(mac, 0))
    return Access(one.revoked | other.revoked, Minima(max(one.minima.default, other.minima.default), macs))
