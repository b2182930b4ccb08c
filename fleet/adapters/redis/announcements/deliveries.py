"""Deliveries of announcements: which way each took, and what the api saw of the device that fetched its clip."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from fleet.adapters.redis.client.store import BLOCK_SECONDS, Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.announcements import Way
from fleet.wire.clips import ClipDelivery

KEPT_SECONDS: Final = 3600.0
"""Life of a delivery's record: longer than any delivery lasts."""
OPEN_SECONDS: Final = 30.0
"""How long after its message a clip can be fetched; a device does so at once."""
_BATCH: Final = 500

Seen = Literal["taken", "closed", "unseen"]
"""`taken`: the device asked for the clip. `closed`: it closed the connection. `unseen`: a proxy hides when."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the api saw of a delivery. `ms` is the time from its request to the close."""

    delivery: str
    seen: Seen
    ms: int


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What is known of a delivery."""

    way: Way | None
    taken: bool
    end: Seen | None
    ms: int
    turn: str = ""
    """The user's turn in whose answer it is spoken; empty if it is a turn of its own."""


class Deliveries:
    """Reads and writes deliveries. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, owner: Owner, delivery: ClipDelivery, way: Way, clip: str = "", turn: str = "") -> None:
        """Note the way of a delivery, before it is taken; `clip` is what the device may fetch.

        With `turn` the text is spoken at the beginning of the answer to the user's turn.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_delivery_note",
            [keys.own(delivery.shard), keys.delivery(delivery.shard, delivery.id)],
            [owner.worker, owner.fence, round(KEPT_SECONDS * 1000), way, clip, turn],
        )

    async def read(self, delivery: ClipDelivery) -> DeliveryRecord:
        """Return what is known of a delivery."""
        key = self._store.keys.delivery(delivery.shard, delivery.id)
        asked = self._store.client.hmget(key, ["way", "taken", "end", "ms", "turn"])
        way, taken, end, ms, turn = await self._store.ask(cast("Awaitable[list[str | None]]", asked))
        return DeliveryRecord(cast("Way | None", way), bool(taken), cast("Seen | None", end), int(ms or 0), turn or "")

    async def keep(self, owner: Owner, mac: str) -> None:
        """Mark a device for which an announcement is kept; its next hello moves the mark into the session.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.device(mac)],
            [owner.worker, owner.fence, DEVICE_SECONDS, "kept", "1"],
        )

    async def take(self, delivery: ClipDelivery) -> str:
        """Note that a device asks for its clip; return the clip's id, empty if it had it before or it is too late."""
        keys = self._store.keys
        (clip,) = await self._store.call(
            "fleet_clip_take",
            [keys.delivery(delivery.shard, delivery.id), keys.clip_receipts(delivery.shard)],
            [delivery.id, round(OPEN_SECONDS * 1000)],
        )
        return clip

    async def withdraw(self, owner: Owner, delivery: ClipDelivery) -> bool:
        """Let nobody take the clip of a delivery any more; return False if the device has taken it.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        (done,) = await self._store.call(
            "fleet_clip_withdraw",
            [keys.own(delivery.shard), keys.delivery(delivery.shard, delivery.id)],
            [owner.worker, owner.fence],
        )
        return done == "1"

    async def close(self, delivery: ClipDelivery, seen: Seen, ms: int) -> None:
        """Note that the device has closed the connection, so many ms after it asked."""
        keys = self._store.keys
        await self._store.call(
            "fleet_clip_close",
            [keys.delivery(delivery.shard, delivery.id), keys.clip_receipts(delivery.shard)],
            [delivery.id, seen, ms],
        )

    async def receipts(self, after: Mapping[int, str]) -> list[tuple[int, str, Receipt]]:
        """Return new receipts of some shards, each with its shard and id; wait for them up to `BLOCK_SECONDS`.

        Args:
            after: For each shard the id of the last receipt that was read, `0` for none.
        """
        named = {self._store.keys.clip_receipts(shard): shard for shard in after}
        positions = {name: after[shard] for name, shard in named.items()}
        streams = await self._store.ask(self._store.reader.read_streams(positions, _BATCH, BLOCK_SECONDS))
        return [
            (named[name], entry, Receipt(fields["d"], cast("Seen", fields["s"]), int(fields["ms"])))
            for name, entries in streams
            for entry, fields in entries
        ]
