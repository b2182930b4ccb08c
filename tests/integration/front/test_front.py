"""The front between real devices' bytes and real brokers that know nothing of fleet."""

import asyncio
import itertools
import random
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.roles.front import Front, FrontLimits
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, presence_topic, up_topic
from tests.support.front_client import PUBACK, PUBCOMP, PUBREC, UNSUBACK, FrontClient, connect_packet, frame, text
from tests.support.front_server import LOOPBACK, PATIENT, device, presence, running_front, watcher
from tests.support.leaping import leaping
from tests.support.mosquitto_server import MosquittoServer
from tests.support.process import running
from tests.support.tcp_relay import TcpRelay

_numbers = itertools.count(random.SystemRandom().randrange(1 << 32))


@pytest.fixture
def mac() -> str:
    """A device of this test's own: the broker serves others too."""
    raw = (next(_numbers) % (1 << 40)).to_bytes(5)
    return "0a:" + ":".join(f"{byte:02x}" for byte in raw)


@pytest.fixture
async def front(plain_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Front]:
    async with running_front(plain_broker.url, keys) as server:
        yield server


@pytest.fixture
def own_plain_broker(tmp_path: Path) -> Iterator[MosquittoServer]:
    with running(MosquittoServer(tmp_path)) as server:
        yield server


async def counted(front: Front, what: str, times: int = 1) -> None:
    """Wait until the front has counted something."""
    async with asyncio.timeout(240):
        while front.counts[what] < times:
            await asyncio.sleep(0.005)


async def test_device_that_never_subscribes_gets_a_message(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    client = await device(front, keys, mac)
    worker = await watcher(plain_broker.port)
    await worker.publish(down_topic(mac), b"hello", qos=1)
    message = await client.message()
    assert (message.topic, message.payload, message.qos) == (down_topic(mac), b"hello", 0)
    await client.ping()


async def test_message_of_a_device_reaches_the_worker_unchanged(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, up_topic(mac))
    client = await device(front, keys, mac)
    for qos, payload in ((0, b"zero"), (1, b"one")):
        await client.publish(up_topic(mac), payload, qos, packet_id=9)
        assert (await worker.message()).payload == payload
    assert (await client.next(PUBACK)).packet_id == 9
    await client.publish(up_topic(mac), b"two", 2, packet_id=10)
    assert (await client.next(PUBREC)).packet_id == 10
    await client.send(frame(0x62, (10).to_bytes(2)))
    assert (await client.next(PUBCOMP)).packet_id == 10
    assert (await worker.message()).payload == b"two"


@pytest.mark.parametrize("level", [3, 4])
async def test_both_spoken_versions_connect(front: Front, keys: CredentialKeys, mac: str, level: int) -> None:
    client = await device(front, keys, mac, level=level)
    await client.ping()


async def test_mqtt_5_is_refused_in_its_own_form(front: Front, keys: CredentialKeys, mac: str) -> None:
    client = await FrontClient.open(LOOPBACK, front.port)
    mine = keys.issue("device", mac)
    await client.send(connect_packet(mac, mine.username, mine.password, level=5))
    assert (await client.receive()).body == b"\x00\x84\x00"
    await client.closed()


async def test_wrong_credentials_are_refused(front: Front, keys: CredentialKeys, mac: str) -> None:
    mine, other = keys.issue("device", mac), keys.issue("device", "02:00:00:00:00:01")
    service = keys.issue("service", "fleet-worker")
    wishes = [
        ((mac, mine.username, other.password), 5),
        ((mac, mine.username, "pässword"), 4),
        ((mac, mine.username), 4),
        ((mac,), 4),
        ((mac.upper(), mine.username, mine.password), 2),
        ((service.client_id, service.username, service.password), 2),
        ((mac, *(keys.issue("service", mac).username, keys.issue("service", mac).password)), 5),
    ]
    for wish, code in wishes:
        client = await FrontClient.open(LOOPBACK, front.port)
        assert await client.connect(*wish) == code
        await client.closed()
    await counted(front, "not authorised", 2)


async def test_foreign_topic_and_retained_message_are_dropped_and_acknowledged(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, "fleet/up/#", "fleet/down/#", f"{presence_topic(mac)}/#")
    client = await device(front, keys, mac)
    assert (await presence(worker, mac))["online"] is True
    await client.publish(up_topic("02:00:00:00:00:01"), b"forged")
    await client.publish(presence_topic(mac), b"forged")
    await client.publish(down_topic(mac), b"forged", 1, packet_id=3)
    assert (await client.next(PUBACK)).packet_id == 3
    await client.publish("", b"forged", 2, packet_id=4)
    assert (await client.next(PUBREC)).packet_id == 4
    await client.send(frame(0x62, (4).to_bytes(2)))
    assert (await client.next(PUBCOMP)).packet_id == 4
    await client.publish(up_topic(mac), b"retained", retain=True)
    await client.publish(up_topic(mac), b"honest")
    message = await worker.message()
    while message.topic != up_topic(mac):  # other tests use the broker too
        assert message.payload != b"forged"
        message = await worker.message()
    assert message.payload == b"honest"
    assert front.counts["foreign topic"] == 5


async def test_device_that_also_subscribes_gets_everything_once(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    client = await device(front, keys, mac)
    assert await client.subscribe((down_topic(mac), 1)) == b"\0"
    assert await client.subscribe(("#", 0), (down_topic(mac), 0), (down_topic("02:00:00:00:00:01"), 0)) == b"\x80\0\x80"
    worker = await watcher(plain_broker.port)
    await worker.publish(down_topic(mac), b"once")
    assert (await client.message()).payload == b"once"
    await client.ping()
    await client.send(frame(0xA2, (5).to_bytes(2) + text(down_topic(mac))))
    assert (await client.next(UNSUBACK)).packet_id == 5
    await client.ping()


async def test_presence_comes_with_a_rising_epoch(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    last = 0
    for leave in ("goodbye", "abort"):
        client = await device(front, keys, mac)
        on = await presence(worker, mac)
        assert on == {
            "online": True,
            "epoch": on["epoch"],
            "ip": "127.0.0.1",
            "user": keys.issue("device", mac).username,
        }
        await (client.close() if leave == "goodbye" else asyncio.sleep(0, client.abort()))
        assert await presence(worker, mac) == {"online": False, "epoch": on["epoch"]}
        assert last < on["epoch"] < 2**53
        last = on["epoch"]


async def test_takeover_sends_no_false_offline(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    first = await device(front, keys, mac)
    second = await device(front, keys, mac)
    await first.closed()
    news = [await presence(worker, mac), await presence(worker, mac)]
    assert [one["online"] for one in news] == [True, True]
    assert news[0]["epoch"] < news[1]["epoch"]
    await worker.publish(down_topic(mac), b"for the second")
    assert (await second.message()).payload == b"for the second"
    await second.close()
    assert await presence(worker, mac) == {"online": False, "epoch": news[1]["epoch"]}


async def test_takeover_by_another_front_leaves_the_device_online(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    first = await device(front, keys, mac)
    async with running_front(plain_broker.url, keys) as other:
        second = await device(other, keys, mac)
        await first.closed()
        # Offline comes twice for the old connection: the broker's Will and the first front's own word.
        news = [await presence(worker, mac) for _ in range(4)]
        newest = max(news, key=lambda one: (one["epoch"], not one["online"]))
        assert sorted(one["epoch"] for one in news).count(newest["epoch"]) == 1
        assert newest["online"] is True
        await second.ping()


async def test_front_that_dies_is_survived_by_the_broker_saying_offline(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    async with running_front(plain_broker.url, keys) as front:
        client = await device(front, keys, mac)
        on = await presence(worker, mac)
    await client.closed()
    assert await presence(worker, mac) == {"online": False, "epoch": on["epoch"]}


async def test_last_message_of_a_device_is_published_unless_it_says_goodbye(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, up_topic(mac))
    will = (up_topic(mac), b"last", 0)
    await (await device(front, keys, mac, will=will)).close()
    await counted(front, "left")
    (await device(front, keys, mac, will=(up_topic("02:00:00:00:00:01"), b"forged", 0))).abort()
    (await device(front, keys, mac, will=will)).abort()
    assert (await worker.message()).payload == b"last"
    await worker.ping()


async def test_restart_of_the_broker_is_announced_when_it_is_back(
    own_plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    broker = own_plain_broker
    async with running_front(broker.url, keys) as front:
        worker = await watcher(broker.port, presence_topic(mac))
        client = await device(front, keys, mac)
        on = await presence(worker, mac)
        broker.kill()
        await client.closed()
        refused = await FrontClient.open(LOOPBACK, front.port)
        mine = keys.issue("device", mac)
        assert await refused.connect(mac, mine.username, mine.password) == 3
        await refused.closed()
        broker.start()
        worker = await watcher(broker.port, presence_topic(mac))
        again = await device(front, keys, mac)
        news = await presence(worker, mac)
        while not news["online"]:
            news = await presence(worker, mac)
        assert news["epoch"] > on["epoch"]
        await again.close()
        gone = await presence(worker, mac)
        if gone == {"online": False, "epoch": on["epoch"]}:
            # That the first connection was lost goes another way, and may be told after the second one.
            gone = await presence(worker, mac)
        assert gone == {"online": False, "epoch": news["epoch"]}


async def test_offline_during_an_outage_is_announced_after_it(
    own_plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    broker = own_plain_broker
    async with TcpRelay(broker.port) as relay, running_front(f"mqtt://{LOOPBACK}:{relay.port}", keys) as front:
        worker = await watcher(broker.port, presence_topic(mac))
        client = await device(front, keys, mac)
        on = await presence(worker, mac)
        broker.kill()
        await client.closed()
        # The broker keeps nothing: the worker is there before the front gets through.
        relay.freeze()
        broker.start()
        worker = await watcher(broker.port, presence_topic(mac))
        relay.thaw()
        assert await presence(worker, mac) == {"online": False, "epoch": on["epoch"]}


@pytest.mark.parametrize(
    ("junk", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: fleet\r\n\r\n", "no connect"),
        (b"\x10\xff\xff\xff\xff\x7f", "malformed"),
        (b"\x10\xff\xff\xff\x7f", "oversize"),
        (b"\xc0\x00", "no connect"),
        (b"\x10\x02\x00\x00", "malformed"),
        (bytes(range(256)) * 10, "no connect"),
    ],
)
async def test_junk_is_closed_and_counted(front: Front, junk: bytes, why: str) -> None:
    client = await FrontClient.open(LOOPBACK, front.port)
    await client.send(junk)
    await client.closed()
    await counted(front, why)
    assert front.connections == 0


async def test_broken_packet_after_connect_ends_the_device(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    mine = keys.issue("device", mac)
    again = connect_packet(mac, mine.username, mine.password)
    for number, broken in enumerate([again, b"\x32\x02\x00\x00", b"\xf0\x00", b"\x20\x02\x00\x00"]):
        client = await device(front, keys, mac)
        await client.send(broken)
        await client.closed()
        news = [await presence(worker, mac), await presence(worker, mac)]
        assert [one["online"] for one in news] == [True, False], number


async def test_oversize_message_ends_the_device_and_the_largest_passes(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, up_topic(mac))
    client = await device(front, keys, mac)
    await client.publish(up_topic(mac), b"x" * 131_000)
    assert len((await worker.message()).payload) == 131_000
    await client.publish(up_topic(mac), b"x" * 131_100)
    await client.closed()
    assert front.counts["oversize"] == 1


async def test_packets_sent_ahead_of_the_connack_arrive_in_order(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, up_topic(mac))
    client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
    early = b"".join(frame(0x30, text(up_topic(mac)) + b"%d" % number) for number in range(50))
    await client.send(connect_packet(mac, mine.username, mine.password) + early)
    assert (await client.receive()).body == b"\0\0"
    await client.publish(up_topic(mac), b"50")
    assert [(await worker.message()).payload for _ in range(51)] == [b"%d" % number for number in range(51)]


@pytest.mark.parametrize("early", [b"\xc0\0" * 64, frame(0x30, text("t") + bytes(16 * 1024))])
async def test_more_ahead_of_the_connack_than_devices_send_ends_the_connection(
    front: Front, keys: CredentialKeys, mac: str, early: bytes
) -> None:
    client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
    await client.send(connect_packet(mac, mine.username, mine.password) + early)
    await client.closed()
    await counted(front, "impatient")
    assert front.connections == 0


async def test_a_connect_that_is_larger_than_any_is_not_waited_for(front: Front) -> None:
    client = await FrontClient.open(LOOPBACK, front.port)
    await client.send(frame(0x10, bytes(20_000))[:100])
    await client.closed()
    await counted(front, "oversize")


async def test_a_device_that_leaves_while_nobody_reads_is_not_kept(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    async with running_front(plain_broker.url, keys, is_read=lambda: False) as front:
        client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
        await client.send(connect_packet(mac, mine.username, mine.password))
        async with asyncio.timeout(240):
            while front.unauthenticated or not front.connections:
                await asyncio.sleep(0.01)
        again = await FrontClient.open(LOOPBACK, front.port)
        await again.send(connect_packet(mac, mine.username, mine.password))
        await counted(front, "taken over")
        await client.closed()


async def test_connection_without_connect_is_closed(plain_broker: MosquittoServer, keys: CredentialKeys) -> None:
    async with running_front(plain_broker.url, keys, FrontLimits(connect=0.05)) as front:
        silent = await FrontClient.open(LOOPBACK, front.port)
        half = await FrontClient.open(LOOPBACK, front.port)
        await half.send(connect_packet("02:00:00:00:00:01")[:7])
        await silent.closed()
        await half.closed()
        assert front.counts["no greeting"] == 2


async def test_a_connected_device_needs_no_task(front: Front, keys: CredentialKeys, mac: str) -> None:
    client = await device(front, keys, mac)
    await client.ping()
    assert front.connections == 1
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "front connection"]
    await client.close()
    await counted(front, "left")


async def test_silent_device_is_closed_after_one_and_a_half_keepalives(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    worker = await watcher(plain_broker.port, presence_topic(mac))
    async with asyncio.timeout(240):
        # On a busy machine the broker, which counts too, may be first; then both tell of the end.
        while not front.counts["silent"]:
            client = await device(front, keys, mac, keepalive=1)
            while not (await presence(worker, mac))["online"]:
                pass
            await client.closed()
            while (await presence(worker, mac))["online"]:
                pass


async def test_device_that_does_not_read_is_closed(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    """Bounded by bytes: what waits for it is more than the front keeps."""
    async with running_front(plain_broker.url, keys, FrontLimits(backlog=64 * 1024, stuck=1000)) as front:
        with await _deaf_device(front, keys, mac):
            worker = await watcher(plain_broker.port)
            async with asyncio.timeout(240):
                while not front.counts["device stuck"]:
                    await worker.publish(down_topic(mac), b"x" * 100_000)
                    await worker.ping()


async def test_device_that_takes_nothing_for_long_is_closed(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    """Bounded in time: a small rest that it never takes."""
    limits = FrontLimits(backlog=1 << 30, stuck=0.2)
    async with running_front(plain_broker.url, keys, limits) as front:
        with await _deaf_device(front, keys, mac):
            worker = await watcher(plain_broker.port)
            for _ in range(80):
                await worker.publish(down_topic(mac), b"x" * 100_000)
            await counted(front, "device stuck")


async def _deaf_device(front: Front, keys: CredentialKeys, mac: str) -> socket.socket:
    """Connect a device with a small receive buffer that reads nothing after its CONNACK."""
    loop, deaf = asyncio.get_running_loop(), socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.setblocking(False)
    await loop.sock_connect(deaf, (LOOPBACK, front.port))
    mine = keys.issue("device", mac)
    await loop.sock_sendall(deaf, connect_packet(mac, mine.username, mine.password, keepalive=0))
    assert (await loop.sock_recv(deaf, 4)) == b"\x20\x02\0\0"
    return deaf


async def test_connections_are_bounded(plain_broker: MosquittoServer, keys: CredentialKeys, mac: str) -> None:
    async with running_front(plain_broker.url, keys, replace(PATIENT, connections=3, unauthenticated=2)) as front:
        unauthenticated = [await FrontClient.open(LOOPBACK, front.port) for _ in range(3)]
        await unauthenticated[0].closed()
        client = await device(front, keys, mac)
        await unauthenticated[1].closed()
        assert front.counts["crowded out"] == 2
        await client.ping()
        await FrontClient.open(LOOPBACK, front.port)
        late = await FrontClient.open(LOOPBACK, front.port)
        await late.closed()
        assert front.counts["full"] == 1
        await client.ping()


async def test_broker_that_is_away_gives_connack_3(keys: CredentialKeys, mac: str) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        async with running_front(f"mqtt://{LOOPBACK}:{taken.getsockname()[1]}", keys) as front:
            client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
            assert await client.connect(mac, mine.username, mine.password) == 3
            await client.closed()
            assert front.counts["broker unreachable"] == 1


async def test_device_waits_until_somebody_reads_what_it_sends(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    looks = list[bool]()

    def is_read() -> bool:
        looks.append(len(looks) >= 3)
        return looks[-1]

    async with running_front(plain_broker.url, keys, is_read=is_read) as front:
        client = await device(front, keys, mac)
        assert looks[:4] == [False, False, False, True]
        await client.ping()


async def test_device_that_nobody_would_read_gets_connack_3(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    limits = replace(PATIENT, upstream=0.1)
    async with running_front(plain_broker.url, keys, limits, is_read=lambda: False) as front:
        client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
        assert await client.connect(mac, mine.username, mine.password) == 3
        await client.closed()


async def test_broker_that_says_nothing_gives_connack_3(keys: CredentialKeys, mac: str) -> None:
    with socket.create_server((LOOPBACK, 0)) as mute:
        url = f"mqtt://{LOOPBACK}:{mute.getsockname()[1]}"
        async with running_front(url, keys, FrontLimits(upstream=0.1)) as front:
            client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
            assert await client.connect(mac, mine.username, mine.password) == 3
            await client.closed()


async def test_taken_port_is_told_to_the_operator(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys
) -> None:
    with pytest.RaisesGroup(ConfigError):
        await Front(host=LOOPBACK, port=front.port, upstream=plain_broker.url, keys=keys).run()


async def test_no_frame_of_a_device_overtakes_its_presence(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str
) -> None:
    """The front's own connection stands still; what a device says at once still comes after its presence."""
    async with TcpRelay(plain_broker.port) as relay, running_front(f"mqtt://{LOOPBACK}:{relay.port}", keys) as front:
        async with asyncio.timeout(240):
            while not relay.sent or not relay.sent[0]:
                await asyncio.sleep(0.005)
        relay.hold(0)
        worker = await watcher(plain_broker.port, presence_topic(mac), up_topic(mac))
        client = await device(front, keys, mac)
        await client.publish(up_topic(mac), b"hello")
        on = await presence(worker, mac)
        assert on["online"] is True
        assert (await worker.message()).payload == b"hello"
        await client.close()
        relay.release(0)
        assert await presence(worker, mac) == {"online": False, "epoch": on["epoch"]}


async def test_presence_that_the_broker_gets_late_leaves_no_device_online(
    plain_broker: MosquittoServer, keys: CredentialKeys, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device gives up while its connection to the broker stands still; the last word is that it is gone."""
    limits, leap = replace(PATIENT, upstream=60.0), leaping(monkeypatch)
    async with (
        TcpRelay(plain_broker.port) as relay,
        running_front(f"mqtt://{LOOPBACK}:{relay.port}", keys, limits) as front,
    ):
        worker = await watcher(plain_broker.port, presence_topic(mac))
        ready = await device(front, keys, mac)
        epoch = (await presence(worker, mac))["epoch"]
        number = len(relay.sent)
        relay.hold(number)
        client, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", mac)
        async with asyncio.timeout(240), asyncio.TaskGroup() as group:
            answered = group.create_task(client.connect(mac, mine.username, mine.password))
            while len(relay.sent) == number or not relay.sent[number]:
                await asyncio.sleep(0.005)
            leap(61)
            assert await answered == 3
        await ready.closed()
        relay.release(number)
        news = await presence(worker, mac)
        assert news["online"] is False
        assert news["epoch"] > epoch
