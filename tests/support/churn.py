"""Devices that come, go, vanish and take over each other's connections at random, and what presence says of them."""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

from fleet.wire.presence import Presence, parse
from fleet.wire.topics import down_topic, presence_topic
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import PATIENCE, Message, RawClient, connect_packet

END = "02:e7:d0:00:00:00"
_ENDED = (ConnectionError, asyncio.IncompleteReadError)


@dataclass
class Ledger:
    """All that a service was told, by MAC, in the order in which it came."""

    told: dict[str, list[Presence]] = field(default_factory=dict)

    async def keep(self, watcher: RawClient) -> None:
        """Write down what a subscriber of all presence is told, until the device END comes."""
        while (message := await watcher.message()).topic != presence_topic(END):
            self.told.setdefault(message.topic[-17:], []).append(_presence(message))

    def online(self, mac: str) -> bool:
        """Return what somebody knows who keeps the highest epoch, in whatever order messages came."""
        told = self.told.get(mac, [])
        latest = max((one.epoch for one in told), default=0)
        return bool(told) and all(one.online for one in told if one.epoch == latest)

    def faults(self, mac: str) -> list[str]:
        """Return what no presence may do."""
        told = self.told.get(mac, [])
        online = [one.epoch for one in told if one.online]
        offline = [one.epoch for one in told if not one.online]
        return [
            *(f"{mac}: epochs do not rise" for _ in [1] if online != sorted(set(online))),
            *(f"{mac}: {epoch} ended twice" for epoch in offline if offline.count(epoch) > 1),
            *(f"{mac}: {epoch} ended and never began" for epoch in offline if epoch not in online),
        ]


def _presence(message: Message) -> Presence:
    found = parse(message.payload)
    assert found is not None, message
    return found


class Churn:
    """So many connects of so many devices.

    Args:
        clients: To the broker.
        connects: How many in all.
        seed: Of everything that is left to chance, but the order in which the broker sees it.
    """

    def __init__(self, clients: Clients, connects: int, seed: int, *, devices: int = 40) -> None:
        self._clients = clients
        self._left = connects
        self._chance = random.Random(seed)
        self._macs = [f"02:e7:d0:01:00:{number:02x}" for number in range(devices)]
        self._open: dict[str, list[RawClient]] = {mac: [] for mac in self._macs}
        self.ledger = Ledger()

    async def run(self, hands: int = 8) -> None:
        """Let several hands work at once, then compare what was told with who answers."""
        watcher = await self._clients.service("fleet-watcher")
        assert await watcher.subscribe("fleet/presence/#", qos=1) == 1
        async with asyncio.TaskGroup() as group:
            group.create_task(self.ledger.keep(watcher), name="ledger")
            async with asyncio.TaskGroup() as work:
                for hand in range(hands):
                    work.create_task(self._work(), name=f"hand {hand}")
            living = {mac: [one for one in found if await _answers(one)] for mac, found in self._open.items()}
            await self._clients.device(END)
        for mac in self._macs:
            assert len(living[mac]) <= 1, f"{mac} lives twice"
            assert self.ledger.online(mac) == bool(living[mac]), f"{mac}: {self.ledger.told[mac][-4:]}"
            assert self.ledger.faults(mac) == []
        await self._reach(living)

    async def _work(self) -> None:
        while self._left > 0:
            self._left -= 1
            mac = self._chance.choice(self._macs)
            found = self._open[mac]
            fate = self._chance.random()
            if found and fate < 0.5:
                await self._end(found.pop(), fate < 0.25)
            await self._connect(mac)
            while len(found) > 3:
                await found.pop(0).discard()

    async def _connect(self, mac: str) -> None:
        """Connect, and leave the old connections to the broker; another hand may do the same at this moment."""
        client = await self._clients.stranger()
        who = self._clients.keys.issue("device", mac)
        fate = self._chance.random()
        if fate < 0.1:
            await client.send(connect_packet(who, clean=fate < 0.05))
            await client.discard()
            return
        with contextlib.suppress(*_ENDED):
            assert await client.connect(who, clean=fate < 0.8) == 0
        # Only now: another hand may end what is in the list, and two must not read from one connection.
        self._open[mac].append(client)

    async def _end(self, client: RawClient, politely: bool) -> None:
        if politely:
            with contextlib.suppress(*_ENDED):
                await client.leave()
        await client.discard()

    async def _reach(self, living: dict[str, list[RawClient]]) -> None:
        """Whoever is online is reached, and nobody else is."""
        service = await self._clients.service("fleet-caller", level=5)
        for mac, found in living.items():
            answer = await service.publish_acknowledged(down_topic(mac), b"order")
            assert answer == (0x10 if found else 0x87), mac
            for client in found:
                assert (await client.message()).payload == b"order"


async def _answers(client: RawClient) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            await client.pending()
    except _ENDED:
        return False
    return True
