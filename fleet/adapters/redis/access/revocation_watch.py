"""Follows the list of whose credentials do not count."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from fleet.adapters.redis.access.revocations import Revocations, RevocationStep, State
from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.identity import Minima

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""A change counts everywhere within five seconds; each watcher looks this often."""


@dataclass(frozen=True, slots=True)
class Access:
    """Whose credentials do not count."""

    revoked: frozenset[str] = frozenset()
    minima: Minima = field(default_factory=Minima)


@dataclass(frozen=True, slots=True)
class Change:
    """Whose credentials may count no longer: revoked devices, MACs whose minimum rose.

    `everyone`: that of all rose, or the whole list was read anew, so that only a look at each connection tells.
    """

    revoked: frozenset[str]
    raised: frozenset[str]
    everyone: bool


Told = Callable[[Access, Change], Awaitable[None]]


class RevocationWatch:
    """Tells about every change of the list, the first time at its start; without Redis what was told last counts on.

    So it does when the list was lost: a Redis that came back without its data, or with older data, takes nothing back.

    Args:
        revocations: The list.
        told: Called with each change, and again with the same one when it failed.
    """

    def __init__(self, revocations: Revocations, told: Told) -> None:
        self._revocations = revocations
        self._told = told
        self._known = Access()
        self._state: State | None = None
        self._backoff = Backoff(limit=LOOK_SECONDS)

    async def run(self) -> None:
        """Watch until cancelled."""
        await keep_running("revocations", self._watch, self._backoff)

    async def look(self) -> None:
        """Look once.

        Raises:
            Unavailable: Redis did not answer.
        """
        state = await self._revocations.state()
        if state == self._state:
            return
        state, access, change = await self._follow(state)
        await self._told(access, change)
        self._known, self._state = access, state

    async def _follow(self, state: State) -> tuple[State, Access, Change]:
        """Return the list, the state that it has at least, and what changed."""
        if self._state is not None and state.version > self._state.version:
            steps = await self._revocations.since(self._state)
            if follows(self._state, steps, state):
                return steps[-1].at, *applied(self._known, steps)
        access = Access(await self._revocations.read(), await self._revocations.minima())
        if self._state is not None and state.version <= self._state.version:
            log.error(
                "the list of revoked devices was lost in Redis; what was known stays in force until this restarts",
                extra={"revoked": len(self._known.revoked), "minima": len(self._known.minima.macs)},
            )
            access = united(self._known, access)
        return state, access, Change(access.revoked - self._known.revoked, frozenset(), everyone=True)

    async def _watch(self) -> None:
        while True:
            await self.look()
            self._backoff.reset()
            await asyncio.sleep(LOOK_SECONDS)


def follows(known: State, steps: Sequence[RevocationStep], state: State) -> bool:
    """Whether these changes are all that happened between two states, and can be applied one by one.

    An older version of fleet writes no log. A minimum of all that falls does not say which MACs have one of their own.
    """
    versions = [step.at.version for step in steps]
    whole = versions == list(range(known.version + 1, known.version + 1 + len(steps)))
    return (
        whole
        and known.version + len(steps) >= state.version
        and not any(step.what == "require_all" and not step.generation for step in steps)
    )


def applied(access: Access, steps: Sequence[RevocationStep]) -> tuple[Access, Change]:
    """Return the list after some changes, and whose credentials they took away."""
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
    """Return what both lists refuse."""
    macs = dict(one.minima.macs)
    for mac, generation in other.minima.macs.items():
        macs[mac] = max(generation, macs.get(mac, 0))
    return Access(one.revoked | other.revoked, Minima(max(one.minima.default, other.minima.default), macs))
