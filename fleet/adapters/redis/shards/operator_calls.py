"""Operators' calls: a queue of each shard, apart from its inbox, so that they can push no utterance out of that.

A call has a record that lasts longer than the call itself: by it a call is queued once and published at most once, also
by the next owner of its shard (docs/adr/0044-operators-calls.md).
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Literal, cast

import msgspec

from fleet.adapters.redis.client.store import BLOCK_SECONDS, Store
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.operator_calls import OPERATOR_CALLS, OperatorCall

MOST_QUEUED: Final = 1000
"""Calls of a shard that have not ended. A tenant has one more only while it has fewer than are free."""
MOST_RECORDS: Final = 5000
"""Records of a shard, shared likewise."""
LONGEST_TEXT: Final = 4000
"""Characters of an outcome that are kept."""
_BATCH: Final = 100

Queued = Literal["queued", "known", "full"]
_QUEUED: Final[dict[str, Queued]] = {"QUEUED": "queued", "KNOWN": "known", "FULL": "full"}

CallState = Literal["queued", "sent", "ok", "error", "not_sent", "unknown"]
"""`queued` and `sent` are not final. `unknown`: it was sent, and nobody can tell whether the device did it."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What is known of an operator's call; `text` is the device's answer, or the reason why there is none."""

    tool: str
    state: CallState
    text: str
    queued_ms: int
    """Unix time."""
    ended_ms: int | None = None

    @property
    def over(self) -> bool:
        """Whether the state is final."""
        return self.ended_ms is not None


@dataclass(frozen=True, slots=True)
class QueuedCall:
    """An entry of a shard's queue; it stays there until its call has ended."""

    shard: int
    id: str
    call: OperatorCall | None
    """None if this version cannot read it."""


class OperatorCalls:
    """Queues, reads and ends operators' calls. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, call: OperatorCall, within: float, kept: float) -> Queued:
        """Queue a call for the owner of its shard; `full` if its tenant has its share of the queue or of the records.

        Args:
            call: The call; a second one with its id changes nothing while its record exists.
            within: Seconds in which it may be sent; after that it ends as not sent.
            kept: Seconds that its record is kept, from now on and again from its end on.
        """
        keys, shard = self._store.keys, self._store.keys.shard(call.device)
        (answer,) = await self._store.call(
            "fleet_operator_call_put",
            [keys.operator_calls(shard), keys.operator_call(call.device, call.call), keys.operator_records(shard)],
            [
                *(call.device, call.call, msgspec.json.encode(call), call.tool),
                *(round(kept * 1000), round(within * 1000), MOST_QUEUED, MOST_RECORDS, call.tenant),
            ],
        )
        return _QUEUED[answer]

    async def find(self, mac: str, call: str) -> CallRecord | None:
        """Return the record of a call; None if there is none, or none any more."""
        fields = ["tool", "st", "out", "text", "at", "ended"]
        asked = self._store.client.hmget(self._store.keys.operator_call(mac, call), fields)
        tool, state, outcome, text, at, ended = await self._store.ask(cast("Awaitable[list[str | None]]", asked))
        if state is None:
            return None
        known = cast("CallState", outcome if state == "ended" else state)
        return CallRecord(tool or "", known, text or "", int(at or 0), int(ended) if ended else None)

    async def read(self, after: dict[int, str]) -> list[QueuedCall]:
        """Return new entries of the given shards; wait for them up to `BLOCK_SECONDS`.

        Args:
            after: For each shard the id of the last entry that was read, `0` to begin with those that an earlier owner
                left.
        """
        names = {self._store.keys.operator_calls(shard): shard for shard in after}
        positions = {name: after[shard] for name, shard in names.items()}
        streams = await self._store.ask(self._store.reader.read_streams(positions, _BATCH, BLOCK_SECONDS))
        return [QueuedCall(names[name], entry, _open(fields)) for name, entries in streams for entry, fields in entries]

    async def end(self, owner: Owner, call: OperatorCall, state: CallState, text: str, entry: str = "") -> None:
        """Write a call's outcome, once, and remove its entry from the queue.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        shard = keys.shard(call.device)
        await self._store.call(
            "fleet_operator_call_end",
            [
                *(keys.own(shard), keys.operator_call(call.device, call.call)),
                *(keys.job_outcomes(shard), keys.operator_calls(shard)),
            ],
            [owner.worker, owner.fence, state, text[:LONGEST_TEXT], call.device, call.call, entry],
        )

    async def is_recalled(self, mac: str, call: str) -> bool:
        """Return whether whoever makes a call wants it no more, although it is under way."""
        asked = self._store.client.hget(self._store.keys.operator_call(mac, call), "back")
        return await self._store.ask(cast("Awaitable[str | None]", asked)) is not None

    async def discard(self, entry: QueuedCall) -> None:
        """Remove an entry that this version cannot read."""
        await self._store.ask(self._store.client.xdel(self._store.keys.operator_calls(entry.shard), entry.id))


def _open(fields: dict[str, str]) -> OperatorCall | None:
    try:
        return OPERATOR_CALLS.decode(fields.get("m", ""))
    except (ValueError, RecursionError):
        return None
