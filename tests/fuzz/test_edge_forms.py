"""Whole edges with both forms of the audio socket: the same history of devices, strangers and shards, the same effects.

A session's stream alone is compared in native_targets.py. Here sessions share a socket: they come and go, also with
the ssrc of another one, and devices move between addresses that others use.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.roles.edge.transport.datagrams import has_native
from fleet.wire import edge_messages
from tests.support.datagram_arrival import deliver
from tests.support.edge_stage import Stage, settle
from tests.support.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.skipif(not has_native(), reason="the native part is not built")

T = TypeVar("T")

HOST = "127.0.0.1"
_SENDERS, _DEVICES, _HISTORIES = 4, 3, 10


class Form(Stage):
    """An edge with one form, and the sockets that send to it."""

    def __init__(self, stack: ExitStack, *, native: bool) -> None:
        super().__init__(udp_native=native, edge_sessions=_DEVICES)
        assert self.edge._services.socket.native == native
        self.server = self.edge._services.socket._socket
        self.senders = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(_SENDERS)]
        for sender in self.senders:
            sender.bind((HOST, 0))
            sender.setblocking(False)
        self.got: list[list[bytes]] = [[] for _ in range(_SENDERS)]

    def publish(self, topic: str, payload: bytes) -> bool:
        self.orders.append({"topic": topic, **json.loads(payload)})
        return True

    def put(self, **message: Any) -> None:
        self._inbox.put_nowait(msgspec.convert(message, edge_messages.EdgeCommand))

    def hear(self) -> None:
        for sender, got in zip(self.senders, self.got, strict=True):
            while True:
                try:
                    got.append(sender.recv(4096))
                except BlockingIOError:
                    break

    def state(self) -> dict[str, object]:
        """Return all that may not depend on the form, of each session in its order; the order among sessions may.

        Addresses are those of different sockets.
        """
        sessions = self.edge._registry.by_ssrc
        made = {ssrc: one._made.stream for ssrc, one in sessions.items() if one._made}
        return {
            "counters": dict(self.edge.counters),
            "heard": _by(lambda packet: packet[2:3] if len(packet) > 3 else packet, self.audio_input.seen),
            "orders": _by(lambda order: order["topic"], self.orders),
            "posted": _by(lambda event: event[1], [(event.kind, event.session) for event in self.posted]),
            "sent": [_by(lambda datagram: datagram[4:8], got) for got in self.got],
            "sessions": sorted(sessions),
            "newest": {ssrc: stream.newest for ssrc, stream in made.items()},
            "next": {ssrc: stream.expected and stream.expected[1:] for ssrc, stream in made.items()},
        }


def _by(key: Callable[[T], Hashable], items: Iterable[T]) -> dict[Hashable, list[T]]:
    grouped: dict[Hashable, list[T]] = {}
    for item in items:
        grouped.setdefault(key(item), []).append(item)
    return grouped


class Speaker:
    """A device: what it knows of its session, and what it has sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.mac = f"aa:bb:cc:dd:ee:0{number}"
        self.sender = number
        self.session = self.turn = self.sequence = self.ssrc = 0
        self.key = bytes(16)
        self.first = 0x58
        self.sent: list[bytes] = []

    def seal(self, payload: bytes, sequence: int, flags: int = 0, ssrc: int | None = None) -> bytes:
        number = self.ssrc if ssrc is None else ssrc
        header = struct.pack(">BBHIII", 1, flags, len(payload), number, 0, sequence % 2**32)
        return header + Cipher(algorithms.AES(self.key), modes.CTR(header)).encryptor().update(payload)


class History:
    """What happens to both edges, drawn from a seed."""

    def __init__(self, random: Random, forms: list[Form]) -> None:
        self.random, self.forms = random, forms
        self.speakers = [Speaker(number) for number in range(_DEVICES)]

    async def run(self) -> None:
        for one in self.speakers:
            self.hello(one)
        for _ in range(self.random.randrange(20, 60)):
            await self.step(self.random.choice(self.speakers))
            await asyncio.sleep(self.random.choice((0, 0, 0.01, 0.06, 0.3, 1.5)))
            await settle()
            for form in self.forms:
                form.hear()
            plain, native = (form.state() for form in self.forms)
            assert native == plain

    async def step(self, one: Speaker) -> None:
        pick, other = self.random.choice, self.random.choice(self.speakers)
        match self.random.randrange(20):
            case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                await self.speak(one, other)
            case 7:
                self.hello(one)
            case 8:
                self.command(one, "session_closed")
            case 9 | 10:
                self.command(one, "listening_started", mode=pick(("auto", "realtime", "manual")))
            case 11:
                self.command(one, pick(("listening_stopped", "speech_aborted")))
            case 12 | 13:
                self.answer(one)
            case 14:
                one.sender = self.random.randrange(_SENDERS)
            case 15:
                one.sequence = pick((0, one.sequence + 3, one.sequence + 70, 2**32 - 3, 90))
            case 16:
                loop = asyncio.get_running_loop()
                assert isinstance(loop, VirtualTimeLoop)
                loop.stall(pick((0.1, 0.7, 2.0, 6.0)))
            case _:
                self.attack(one, other)

    def hello(self, one: Speaker) -> None:
        one.session += 1
        taken = [other.ssrc for other in self.speakers]
        one.ssrc = self.random.choice((self.random.getrandbits(32),) * 6 + tuple(taken))
        one.key, one.sequence = self.random.randbytes(16), self.random.choice((0, 0, one.sequence))
        about = {"dialect": "xiaozhi", "shard": 3, "ssrc": one.ssrc, "key": one.key.hex(), "uplink_rate": 16000}
        self.command(one, "session_opened", **about, uplink_frame_ms=60, downlink_rate=24000, downlink_frame_ms=60)

    def command(self, one: Speaker, kind: str, **about: Any) -> None:
        for form in self.forms:
            form.put(kind=kind, device=one.mac, session=f"{one.mac[-1]}s{one.session}", **about)

    def answer(self, one: Speaker) -> None:
        one.turn += 1
        turn = f"t{one.turn}"
        self.command(one, "speech_begun", turn=turn)
        for index in range(self.random.choice((0, 1, 3))):
            self.command(one, "sentence_ready", turn=turn, index=index, text=f"x{index}", language="en")
        self.command(one, "speech_ended", turn=turn, index=3)

    async def speak(self, one: Speaker, other: Speaker) -> None:
        for _ in range(self.random.choice((1, 2, 6, 40))):
            for who in (one, other) if self.random.random() < 0.3 else (one,):
                who.sequence += self.random.choice((1,) * 60 + (0, 2, 5))
                payload = bytes((who.first, self.random.choice((12, 230)), who.number)) + self.random.randbytes(9)
                who.sent = [*who.sent, who.seal(payload, who.sequence)][-40:]
                self.send(who.sender, who.sent[-1])
            if self.random.random() < 0.5:
                await asyncio.sleep(self.random.choice((0.01, 0.06, 0.06)))

    def attack(self, one: Speaker, other: Speaker) -> None:
        random, sent = self.random, one.sent or [b"x"]
        sender = random.choice((one.sender, random.randrange(_SENDERS)))
        payload = bytes((one.first, 12, one.number)) + random.randbytes(9)
        forged = random.choice(sent)[:4] + other.ssrc.to_bytes(4) + random.choice(sent)[8:]
        for _ in range(random.choice((1, 5, 30))):
            ahead = random.choice((0, 1, 1, 2))
            noise = one.seal(bytes(random.choice((0, 1, 3, 30, 1276, 1277, 2032, 2033))), one.sequence + ahead)
            following = one.seal(payload, other.sequence + ahead, ssrc=other.ssrc)
            flagged = one.seal(payload, one.sequence + ahead, flags=random.choice((1, 0x40, 0x80)))
            short = random.choice(sent)[: random.randrange(1, 40)]
            self.send(sender, random.choice((random.choice(sent), forged, noise, following, flagged, short)))

    def send(self, sender: int, datagram: bytes) -> None:
        for form in self.forms:
            deliver(form.senders[sender], datagram, form.server)


async def _live(random: Random) -> None:
    with ExitStack() as stack:
        forms = [Form(stack, native=native) for native in (False, True)]
        running = [asyncio.get_running_loop().create_task(form.edge.run()) for form in forms]
        try:
            await settle()
            await History(random, forms).run()
        finally:
            for one in running:
                one.cancel()
            await asyncio.wait(running)
            assert all(one.cancelled() for one in running)


@pytest.mark.parametrize("seed", range(4))
def test_both_forms_of_an_edge_live_the_same_history(seed: int) -> None:
    for number in range(_HISTORIES):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(_live(Random(f"edge:{seed}:{number}")))
