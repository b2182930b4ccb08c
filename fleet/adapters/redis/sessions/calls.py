"""Pending tool calls.

A call changes the physical world, so it runs at most once: begun here, published once, ended once.
"""

import logging
import secrets
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Literal, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import CALL_KEPT_MS, prefix
from fleet.adapters.redis.shards.operator_calls import LONGEST_TEXT
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Unavailable

log = logging.getLogger(__name__)

MOST_PENDING = 16
"""Calls that one device may have pending."""

MOST_UNDECIDED = 256
"""Calls of all devices together of which this process remembers that Redis did not answer their begin."""

_HIGHEST_ID = 2**30

State = Literal["done", "unknown", "not sent", "pending"]
_STATES: dict[str, State] = {"D": "done", "U": "unknown", "N": "not sent", "S": "pending"}


@dataclass(frozen=True, slots=True)
class CallBegun:
    """Publish now, exactly once, with this id."""

    id: int


@dataclass(frozen=True, slots=True)
class CallKnown:
    """The same call was begun before: its state, and the seconds that its device still has to answer."""

    id: int
    state: State
    result: str
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The call must not be sent.

    `unsaved`: no replica has the call, so after a failover it could be sent again. `over`: the requesting turn is not
    the device's newest any more, or the operator's call has ended. `late`: the operator's call waited for too long.
    `in session`: the operator's call is for idle devices.
    """

    reason: Literal["offline", "busy", "unsaved", "over", "late", "in session"]


@dataclass(frozen=True, slots=True)
class CallingTurn:
    """The turn that requests a call, and the lease of its worker."""

    owner: Owner
    turn: str


@dataclass(frozen=True, slots=True)
class CallingOperator:
    """The operator's call that is to be made, and the lease of its worker; `idle`: not during a session."""

    owner: Owner
    call: str
    idle: bool = False


@dataclass(slots=True)
class OperatorEnd:
    """An operator's call that ends together with its device's answer: who makes it, its id, and its queue's entry."""

    owner: Owner
    call: str
    entry: str
    state: str = ""
    text: str = ""
    done: bool = False
    """Whether it has ended so."""


class CallTable:
    """Begins, ends and sweeps pending calls."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ignored: Counter[Literal["late", "repeated"]] = Counter()
        """Answers without effect on a call."""
        self._undecided: dict[str, bytes] = {}
        """The random bytes of calls whose begin Redis did not answer, but may have recorded; the newest last."""

    async def begin(
        self,
        mac: str,
        idempotency: str,
        seconds: float,
        caller: CallingTurn | CallingOperator | None = None,
        tool: str = "",
    ) -> CallBegun | CallKnown | CallRefused:
        """Record a call before it is sent, and wait until a replica has the record, if there are replicas.

        Args:
            mac: The device.
            idempotency: The call's key: a second begin with the same key sends nothing, until `CALL_KEPT_MS` after the
                call's deadline. A turn is shorter. An operator's call has a record that lasts longer and says the same.
            seconds: Time that the device has to answer.
            caller: The requesting turn or operator's call, if there is one.
            tool: Its name, for the event of the call's end.

        Raises:
            Fenced: Another worker owns the shard now.
            Unavailable: Redis is away; the call must not be sent. The next begin of this process with the same key goes
                on with it. Without one, a call that was recorded ends as unknown at its deadline.
        """
        while True:
            (verdict, known, result, *left), saved = await self._try_begin(mac, idempotency, seconds, caller, tool)
            match verdict:
                case "COLL":
                    continue
                case "GO" | "MINE" if saved:
                    return CallBegun(int(known))
                case "GO" | "MINE":
                    log.warning("call not sent: no replica has it", extra={"device": mac, "id": known})
                    await self.give_up(mac, int(known), sent=False)
                    return CallRefused("unsaved")
                case "OFF":
                    return CallRefused("offline")
                case "SESS":
                    return CallRefused("in session")
                case "BUSY":
                    return CallRefused("busy")
                case "OVER" | "LATE":
                    return CallRefused("over" if verdict == "OVER" else "late")
                case _:
                    return CallKnown(int(known), _STATES[verdict], result, int(left[0]) / 1000 if left else 0.0)

    async def _try_begin(
        self, mac: str, idempotency: str, seconds: float, caller: CallingTurn | CallingOperator | None, tool: str
    ) -> tuple[list[str], bool]:
        """Return what Redis says to a new id, and whether a replica has it."""
        keys = self._store.keys
        key = keys.idempotency(mac, idempotency)
        # Once: each request for random bytes is a system call.
        random = self._undecided.pop(key, None) or secrets.token_bytes(12)
        number, token = int.from_bytes(random[:4]) % (_HIGHEST_ID - 1) + 1, random[4:].hex()
        fence_keys, fence_args = self._fence(mac, caller)
        try:
            return await self._store.call_saved(
                "fleet_call_begin",
                [keys.call(mac, number), key, keys.deadlines(keys.shard(mac)), keys.device(mac), *fence_keys],
                [number, token, int(seconds * 1000), CALL_KEPT_MS, mac, MOST_PENDING, tool, *fence_args],
            )
        except Unavailable:
            if len(self._undecided) >= MOST_UNDECIDED:
                del self._undecided[next(iter(self._undecided))]
            self._undecided[key] = random
            raise

    async def complete(self, mac: str, number: str, result: str, end: OperatorEnd | None = None) -> bool:
        """Record the device's answer; False if it is late, repeated, or belongs to no call.

        Args:
            mac: The device.
            number: Of the call.
            result: The answer.
            end: The operator's call that is ended in the same step, if the answer counts and its worker owns the shard.
        """
        state = await self._finish(mac, number, "D", result, end)
        if state == "LATE":
            self.ignored["late"] += 1
            log.info("late answer kept", extra={"device": mac, "id": number})
        elif state != "D":
            self.ignored["repeated"] += 1
        return state == "D"

    async def give_up(self, mac: str, number: int, *, sent: bool) -> bool:
        """End a call without an answer; False if an answer arrived before."""
        state = "U" if sent else "N"
        return await self._finish(mac, str(number), state, "") == state

    async def result(self, mac: str, number: int) -> str | None:
        """Return the answer of a call that is done, or None."""
        state, result, _ = await self._read(mac, number)
        return result if state == "D" else None

    async def late(self, mac: str, number: int) -> str | None:
        """Return an answer that arrived after its call had ended as unknown, or None."""
        _, result, late = await self._read(mac, number)
        return result if late else None

    async def sweep(self, shard: int, limit: int = 100) -> list[tuple[str, str]]:
        """End the calls of a shard whose deadline passed as unknown; return their devices and ids."""
        deadlines = self._store.keys.deadlines(shard)
        ended = await self._store.call("fleet_sweep", [deadlines], [prefix(shard), limit])
        return [(mac, number) for mac, _, number in (entry.partition("|") for entry in ended)]

    def _fence(self, mac: str, caller: CallingTurn | CallingOperator | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return keys and arguments that fence a call: an outdated turn or owner is refused."""
        if caller is None:
            return (), ()
        keys, owner = self._store.keys, caller.owner
        if isinstance(caller, CallingOperator):
            record = keys.operator_call(mac, caller.call)
            session = (keys.session(mac),) if caller.idle else ()
            return (keys.own(keys.shard(mac)), record, *session), (owner.worker, owner.fence, "")
        return (keys.own(keys.shard(mac)), keys.turn(mac)), (owner.worker, owner.fence, caller.turn)

    async def _read(self, mac: str, number: int) -> list[str | None]:
        key = self._store.keys.call(mac, number)
        fields = self._store.client.hmget(key, ["st", "res", "late"])
        return await self._store.ask(cast("Awaitable[list[str | None]]", fields))

    async def _finish(self, mac: str, number: str, state: str, result: str, end: OperatorEnd | None = None) -> str:
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        names = [keys.call(mac, number), keys.deadlines(shard), keys.device(mac), keys.events(shard)]
        words = [mac, number, state, result, secrets.token_hex(4)]
        if end is not None:
            names += [keys.own(shard), keys.operator_call(mac, end.call)]
            names += [keys.job_outcomes(shard), keys.operator_calls(shard)]
            words += [end.owner.worker, end.owner.fence, end.state, end.text[:LONGEST_TEXT], end.call, end.entry]
        answer, *more = await self._store.call("fleet_call_finish", names, words)
        if end is not None and more:
            end.done = True
        return answer
