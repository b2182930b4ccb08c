"""Pending tool calls.

A call changes the physical world, so it runs at most once: begun here, published once, ended once.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import CALL_KEPT_MS, prefix
from fleet.adapters.redis.shards.operator_calls import LONGEST_TEXT
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Unavailable
from fleet.ground.together import Together

log = logging.getLogger(__name__)

MOST_PENDING = 16
"""Calls that one device may have pending."""

MOST_UNDECIDED = 256
"""Calls of all devices together of which this process remembers that Redis did not answer their begin."""

_HIGHEST_ID = 2**30
_RANDOM = 12
"""Random bytes of a call: four for its id, the others for the token of its begin."""

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


_Caller = CallingTurn | CallingOperator | None


class _Begin(NamedTuple):
    """A call that is to begin: its idempotency key in Redis, the time for its answer, and its tool."""

    key: str
    seconds: float
    tool: str


class _Verdict(NamedTuple):
    """What Redis says to a call that is to begin, and whether a replica has it."""

    verdict: str
    id: str
    result: str
    left: str
    saved: bool


class _End(NamedTuple):
    """A call that is to end."""

    number: str
    state: str
    result: str = ""
    operator: OperatorEnd | None = None


class CallTable:
    """Begins, ends and sweeps pending calls. What is asked for a device at the same time is asked of Redis at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ignored: Counter[Literal["late", "repeated"]] = Counter()
        """Answers without effect on a call."""
        self._undecided: dict[str, bytes] = {}
        """The random bytes of calls whose begin Redis did not answer, but may have recorded; the newest last."""
        self._begins = Together("calls begin", self._begin_all)
        self._ends = Together("calls end", self._end_all)

    async def begin(
        self,
        mac: str,
        idempotency: str,
        seconds: float,
        caller: CallingTurn | CallingOperator | None = None,
        tool: str = "",
    ) -> CallBegun | CallKnown | CallRefused:
        """Record a call before it is sent, and wait until a replica has the record, if there are replicas.

        The calls that a turn begins in one iteration of the loop are recorded by one function.

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
        key = self._store.keys.idempotency(mac, idempotency)
        while True:
            verdict, known, result, left, saved = await self._begins.put((mac, caller), _Begin(key, seconds, tool))
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
                    return CallKnown(int(known), _STATES[verdict], result, int(left) / 1000)

    async def _begin_all(self, asked: tuple[str, _Caller], begins: Sequence[_Begin]) -> list[_Verdict]:
        """Return what Redis says to new ids for calls of one device."""
        (mac, caller), keys = asked, self._store.keys
        names = [keys.deadlines(keys.shard(mac)), keys.device(mac)]
        words: list[str | int] = [mac, CALL_KEPT_MS, MOST_PENDING, len(begins)]
        # Once for all: each request for random bytes is a system call.
        fresh = secrets.token_bytes(_RANDOM * len(begins))
        randoms: dict[str, bytes] = {}
        for at, one in enumerate(begins):
            random = self._undecided.pop(one.key, None) or fresh[at * _RANDOM :][:_RANDOM]
            number, token = int.from_bytes(random[:4]) % (_HIGHEST_ID - 1) + 1, random[4:].hex()
            randoms.setdefault(one.key, random)
            names += keys.call(mac, number), one.key
            words += number, token, int(one.seconds * 1000), one.tool
        fence_keys, fence_args = self._fence(mac, caller)
        try:
            said, saved = await self._store.call_saved("fleet_call_begin", [*names, *fence_keys], [*words, *fence_args])
        except Unavailable:
            self._undecided |= randoms
            for key in list(self._undecided)[: max(len(self._undecided) - MOST_UNDECIDED, 0)]:
                del self._undecided[key]
            raise
        fours = [said[at : at + 4] for at in range(0, len(said), 4)]
        return [_Verdict(verdict, known, result, left, saved) for verdict, known, result, left in fours]

    async def complete(self, mac: str, number: str, result: str, end: OperatorEnd | None = None) -> bool:
        """Record the device's answer; False if it is late, repeated, or belongs to no call.

        Args:
            mac: The device.
            number: Of the call.
            result: The answer.
            end: The operator's call that is ended in the same step, if the answer counts and its worker owns the shard.
        """
        return await self.begin_completing(mac, number, result, end)

    def begin_completing(
        self, mac: str, number: str, result: str, end: OperatorEnd | None = None
    ) -> asyncio.Future[bool]:
        """Begin to `complete` a call, together with all that the device answers in this iteration of the loop."""
        # An operator's call ends alone.
        return self._ends.put((mac, number if end else ""), _End(number, "D", result, end))

    async def give_up(self, mac: str, number: int, *, sent: bool) -> bool:
        """End a call without an answer; False if an answer arrived before."""
        return await self._ends.put((mac, ""), _End(str(number), "U" if sent else "N"))

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

    async def _end_all(self, asked: tuple[str, str], ends: Sequence[_End]) -> list[bool]:
        """End calls of one device; return which of them ended so."""
        (mac, _), keys = asked, self._store.keys
        shard, end = keys.shard(mac), ends[0].operator
        names = [keys.deadlines(shard), keys.device(mac), keys.events(shard)]
        words: list[str | int] = [mac, secrets.token_hex(4), len(ends)]
        for one in ends:
            names.append(keys.call(mac, one.number))
            words += one.number, one.state, one.result
        if end is not None:
            names += [keys.own(shard), keys.operator_call(mac, end.call)]
            names += [keys.job_outcomes(shard), keys.operator_calls(shard)]
            words += [end.owner.worker, end.owner.fence, end.state, end.text[:LONGEST_TEXT], end.call, end.entry]
        states = await self._store.call("fleet_call_finish", names, words)
        if end is not None and len(states) > len(ends):
            end.done = True
        return [self._note(mac, one, state) for one, state in zip(ends, states, strict=False)]

    def _note(self, mac: str, end: _End, state: str) -> bool:
        """Count an answer without effect; return whether the call ended as was asked."""
        if end.state == "D" and state == "LATE":
            self.ignored["late"] += 1
            log.info("late answer kept", extra={"device": mac, "id": end.number})
        elif end.state == "D" and state != "D":
            self.ignored["repeated"] += 1
        return state == end.state
