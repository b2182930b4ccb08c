"""Offers of firmware in the records of devices, where bootstrap reads them with all else."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

import msgspec

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import by_shard
from fleet.wire.firmware_offer import OFFERS, FirmwareOffer


@dataclass(frozen=True, slots=True)
class DeviceOffer:
    """An offer to a device until a time in ms; without a board it is not given at bootstrap."""

    mac: str
    offer: FirmwareOffer
    until: int
    board: str = ""


class Offers:
    """Makes, withdraws and takes offers. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, fence: int, offers: Sequence[DeviceOffer]) -> set[str]:
        """Offer; what was offered under the same id stays. Return the MACs of which Redis knows nothing.

        Raises:
            Fenced: There is a newer lease of control.
        """
        missing, keys = set[str](), self._store.keys
        for shard, some in by_shard(keys.shards, {one.mac: one for one in offers}.values(), attrgetter("mac")).items():
            words: list[str | int | bytes] = [fence]
            for one in some:
                words += [one.offer.id, one.until, one.board, one.offer.version, msgspec.json.encode(one.offer)]
            names = [keys.job_fence(shard), *(keys.device(one.mac) for one in some)]
            known = await self._store.call("fleet_offers_put", names, words)
            missing |= {one.mac for one, is_known in zip(some, known, strict=True) if not int(is_known)}
        return missing

    async def withdraw(self, ids: Mapping[str, str], *, untaken: bool = False) -> set[str]:
        """Withdraw offers, by MAC; return the MACs of those that were withdrawn.

        Args:
            ids: Of the offers; others stay.
            untaken: Only offers that no device was given yet.
        """
        gone, keys = set[str](), self._store.keys
        for some in by_shard(keys.shards, ids, str).values():
            names = [keys.device(mac) for mac in some]
            answers = await self._store.call(
                "fleet_offers_withdraw", names, [int(untaken), *(ids[mac] for mac in some)]
            )
            gone |= {mac for mac, one in zip(some, answers, strict=True) if int(one)}
        return gone

    async def take(self, mac: str, offer: str, secret: str) -> FirmwareOffer | None:
        """Note that a device begins its download; return the offer, None if it has none of this name."""
        keys = self._store.keys
        known = await self._store.ask(cast("Awaitable[str | None]", self._store.client.hget(keys.device(mac), "ofj")))
        if known is None or OFFERS.decode(known).secret != secret:
            return None
        taken = [keys.device(mac), keys.events(keys.shard(mac))]
        [found] = await self._store.call("fleet_offer_take", taken, [offer, mac])
        return OFFERS.decode(found) if found else None
