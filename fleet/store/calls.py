"""Pending tool calls.

A call changes the physical world, so it is at most once: begun here, published once, ended once.
"""

import secrets
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, cast

from fleet.store.connect import Store
from fleet.store.keys import CALL_KEPT_MS

MOST_PENDING = 16
"""Calls that one device may have pending."""

_HIGHEST_ID = 2**30

State = Literal["done", "unknown", "never sent", "pending"]
_STATES: dict[str, State] = {"D": "done", "U": "unknown", "N": "never sent", "S": "pending"}


@dataclass(frozen=True, slots=True)
class Go:
    """Publish now, exactly once, with this id."""

    id: int


@dataclass(frozen=True, slots=True)
class Known:
    """The same call was begun before; this is how it stands."""

    id: int
    state: State
    result: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was begun and nothing may be sent."""

    reason: Literal["offline", "busy"]


class Calls:
    """Begins, ends and sweeps pending calls."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, mac: str, idempotency: str, seconds: float) -> Go | Known | Refused:
        """Write down that a call is about to be sent.

        Args:
            mac: The device.
            idempotency: The call's name for ever: a second begin with the same one never sends again.
            seconds: Time that the device has to answer.
        """
        token = secrets.token_hex(8)
        while True:
            number = secrets.randbelow(_HIGHEST_ID - 1) + 1
            keys = self._store.keys
            verdict, known, result = await self._store.call(
                "fleet_call_begin",
                [
                    keys.call(mac, number),
                    keys.idempotency(mac, idempotency),
                    keys.deadlines(keys.shard(mac)),
                    keys.device(mac),
                ],
                [number, token, int(seconds * 1000), CALL_KEPT_MS, mac, MOST_PENDING],
            )
            match verdict:
                case "COLL":
                    continue
                case "GO" | "MINE":
                    return Go(int(known))
                case "OFF":
                    return Refused("offline")
                case "BUSY":
                    return Refused("busy")
                case _:
                    return Known(int(known), _STATES[verdict], result)

    async def complete(self, mac: str, number: str, result: str) -> bool:
        """Write down the device's answer; False when it is late, repeated, or belongs to no call."""
        return await self._finish(mac, number, "D", result) == "D"

    async def give_up(self, mac: str, number: int, *, sent: bool) -> bool:
        """End a call without an answer; False when an answer came first."""
        state = "U" if sent else "N"
        return await self._finish(mac, str(number), state, "") == state

    async def result(self, mac: str, number: int) -> str | None:
        """Return the answer of a call that is done, or None."""
        record = await self._store.ask(
            cast(
                "Awaitable[list[str | None]]",
                self._store.client.hmget(self._store.keys.call(mac, number), ["st", "res"]),
            )
        )
        return record[1] if record[0] == "D" else None

    async def sweep(self, shard: int, limit: int = 100) -> list[tuple[str, str]]:
        """End the calls of a shard whose deadline passed as unknown; return their devices and ids."""
        keys = self._store.keys
        ended = await self._store.call("fleet_sweep", [keys.deadlines(shard)], [keys.prefix(shard), limit])
        return [(mac, number) for mac, _, number in (entry.partition("|") for entry in ended)]

    async def _finish(self, mac: str, number: str, state: str, result: str) -> str:
        keys = self._store.keys
        (answer,) = await self._store.call(
            "fleet_call_finish",
            [keys.call(mac, number), keys.deadlines(keys.shard(mac)), keys.device(mac)],
            [mac, number, state, result],
        )
        return answer
