"""Many devices that say numbered words and write down what comes back, cheap enough for thousands in one process."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import Connack, Connect, Publish
from fleet.wire.mqtt.reader import BrokerReader
from fleet.wire.topics import up_topic
from tests.support.mosquitto_server import MosquittoServer

_KEEPALIVE = 240
_JOIN_AT_ONCE = 50


@dataclass(slots=True, eq=False)
class Member(asyncio.Protocol):
    """One device. Each word names a session that nobody knows, so a worker answers it with that session's goodbye."""

    mac: str
    said: dict[int, float] = field(default_factory=dict)
    """When each word was said, on the loop's clock."""
    heard: list[tuple[int, float]] = field(default_factory=list)
    """The answers in order of arrival, and when they came."""
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    lost: bool = False
    _reader: BrokerReader = field(default_factory=BrokerReader)
    _transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        for packet in self._reader.feed(data):
            if isinstance(packet, Connack):
                assert packet.code == 0
                self.joined.set()
            elif isinstance(packet, Publish) and (answer := _number(packet.payload)) is not None:
                self.heard.append((answer, now))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def send(self, frame: bytes) -> None:
        assert self._transport
        self._transport.write(frame)

    def say(self) -> None:
        number = len(self.said)
        self.said[number] = asyncio.get_running_loop().time()
        word = {"type": "listen", "state": "start", "mode": "auto", "session_id": f"word-{number}"}
        self.send(packets.publish(up_topic(self.mac), json.dumps(word).encode()))

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    @property
    def fresh(self) -> list[int]:
        """The answers in order of arrival, without those that came again."""
        return list(dict.fromkeys(number for number, _ in self.heard))

    @property
    def waits(self) -> list[float]:
        """How long each word waited for its first answer."""
        first: dict[int, float] = {}
        for number, at in self.heard:
            first.setdefault(number, at)
        return [first[number] - at for number, at in self.said.items() if number in first]


class Herd:
    """All of them."""

    def __init__(self, broker: MosquittoServer, keys: CredentialKeys, macs: Sequence[str]) -> None:
        self._broker = broker
        self._keys = keys
        self._chooser = random.Random(7)
        self.members = [Member(mac) for mac in macs]

    async def join(self) -> None:
        """Connect everybody."""
        for at in range(0, len(self.members), _JOIN_AT_ONCE):
            async with asyncio.timeout(240), asyncio.TaskGroup() as group:
                for member in self.members[at : at + _JOIN_AT_ONCE]:
                    group.create_task(self._join(member))

    async def talk(self, rate: float, seconds: float, burst: int = 2) -> None:
        """Let random members say `burst` words at a time, `rate` words a second in all."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for number in range(round(rate * seconds / burst)):
            if (pause := begun + number * burst / rate - loop.time()) > 0:
                await asyncio.sleep(pause)
            self.shout(1, burst)

    def shout(self, members: int, burst: int = 2) -> None:
        """Let some members say `burst` words each, all at once."""
        for _ in range(members):
            member = self._chooser.choice(self.members)
            for _ in range(burst):
                member.say()

    async def until_answered(self, seconds: float = 240.0) -> None:
        """Wait until every word was answered, or until nothing more can be hoped for."""
        try:
            async with asyncio.timeout(seconds):
                while any(len(member.fresh) < len(member.said) for member in self.members):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            return

    def close(self) -> None:
        for member in self.members:
            member.close()

    async def _join(self, member: Member) -> None:
        await asyncio.get_running_loop().create_connection(lambda: member, self._broker.host, self._broker.port)
        credentials = self._keys.issue("device", member.mac)
        member.send(packets.connect(Connect.of(credentials, _KEEPALIVE)))
        await member.joined.wait()


def _number(payload: bytes) -> int | None:
    message = json.loads(payload)
    if message["type"] != "goodbye":
        return None
    _, of_a_word, number = message["session_id"].partition("word-")
    return int(number) if of_a_word else None
