"""MqttSession against a real Mosquitto."""

import asyncio
import random
import uuid

import pytest

from fleet.adapters.net.mqtt import connection, session
from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Overloaded, Unavailable
from fleet.wire.identity import Credentials
from fleet.wire.mqtt.packets import Will
from fleet.wire.mqtt.reader import LARGEST_OF_BROKER
from tests.support.link_session import PATIENCE, Recorder, running, until, who
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_raw import RawClient
from tests.support.tcp_relay import TcpRelay


@pytest.fixture(autouse=True)
def _broker_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", PATIENCE)
    monkeypatch.setattr(connection, "_CLOSE_SECONDS", PATIENCE)


@pytest.fixture
def name() -> str:
    """A client id and topic of this test alone."""
    return f"fleet-{uuid.uuid4().hex}"


def at(port: int) -> MqttAddress:
    return MqttAddress("127.0.0.1", port)


def shard(port: int, name: str, recorder: Recorder, bound: int = 1000, will: Will | None = None) -> MqttSession:
    reading = Reading([f"{name}/+"], recorder, bound)
    return MqttSession(at(port), who(name), persistent=True, will=will, reading=reading)


async def ended(task: asyncio.Task[None]) -> str:
    """Return the reason for which a session ended by itself."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Unavailable) as caught:
            await task
    return str(caught.value)


def acknowledged(sent: bytearray) -> list[int]:
    """Return the ids of all PUBACK packets among what a client sent."""
    ids, at = [], 0
    while at < len(sent):
        size, shift, start = 0, 0, at + 1
        while True:
            byte, start = sent[start], start + 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if sent[at] == 0x40:
            ids.append(int.from_bytes(sent[start : start + 2]))
        at = start + size
    return ids


async def test_unhandled_messages_go_to_the_next_session_of_the_same_client_id(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    first = Recorder(lambda payload: asyncio.sleep(0 if payload == b"0" else 3600))
    async with running(shard(relay.port, name, first)) as task:
        for number in range(5):
            await device.publish(f"{name}/up", b"%d" % number)
        await until(lambda: len(first.seen) == 5 and acknowledged(relay.sent[0]) != [])
        relay.cut()
        await ended(task)
        assert first.running == 0
    second = Recorder()
    session = shard(relay.port, name, second)
    async with running(session):
        await until(lambda: len(second.seen) == 4)
    assert session.resumed
    assert second.seen == [b"1", b"2", b"3", b"4"]


async def test_messages_that_came_while_nobody_was_connected_are_delivered(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    async with running(shard(relay.port, name, Recorder())):
        pass
    for number in range(50):
        await device.publish(f"{name}/up", b"%d" % number)
    await device.pending()
    recorder = Recorder()
    async with running(shard(relay.port, name, recorder)):
        await until(lambda: len(recorder.seen) == 50)
    assert recorder.seen == [b"%d" % number for number in range(50)]


async def test_handlers_begin_and_acknowledge_in_order_of_arrival_though_they_end_in_any(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    chance = random.Random(7)
    recorder = Recorder(lambda _: asyncio.sleep(chance.uniform(0, 0.02)))
    async with running(shard(relay.port, name, recorder)):
        for number in range(1000):
            await device.publish(f"{name}/up", b"%d" % number)
        await until(lambda: len(acknowledged(relay.sent[0])) == 1000)
    assert recorder.seen == [b"%d" % number for number in range(1000)]
    assert recorder.most > 1
    ids = acknowledged(relay.sent[0])
    assert ids == sorted(ids)
    again = Recorder()
    async with running(shard(relay.port, name, again)):
        await device.publish(f"{name}/up", b"last")
        await until(lambda: b"last" in again.seen)
    assert again.seen == [b"last"]


async def test_no_more_handlers_run_than_the_bound(relay: TcpRelay, device: RawClient, name: str) -> None:
    recorder = Recorder(lambda _: asyncio.sleep(0.001))
    async with running(shard(relay.port, name, recorder, bound=10)):
        for number in range(500):
            await device.publish(f"{name}/up", b"%d" % number)
        await until(lambda: len(recorder.seen) == 500 and recorder.running == 0)
    assert recorder.most == 10
    assert recorder.seen == [b"%d" % number for number in range(500)]


async def test_failing_handler_is_logged_and_its_message_does_not_come_again(
    relay: TcpRelay, device: RawClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(payload: bytes) -> None:
        if payload == b"bad":
            raise ValueError("a defect")

    recorder = Recorder(fail)
    async with running(shard(relay.port, name, recorder)):
        await device.publish(f"{name}/up", b"bad")
        await device.publish(f"{name}/up", b"good")
        await until(lambda: len(acknowledged(relay.sent[0])) == 2)
    assert "work crashed" in caplog.messages
    again = Recorder()
    async with running(shard(relay.port, name, again)):
        await device.publish(f"{name}/up", b"next")
        await until(lambda: b"next" in again.seen)
    assert again.seen == [b"next"]


async def test_message_that_is_too_large_is_skipped(
    relay: TcpRelay, device: RawClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    async with running(shard(relay.port, name, recorder)):
        await device.publish(f"{name}/up", bytes(3 * LARGEST_OF_BROKER))
        await device.publish(f"{name}/up", b"small")
        await until(lambda: len(acknowledged(relay.sent[0])) == 2)
    assert recorder.seen == [b"small"]
    assert "message too large" in caplog.messages


async def test_takeover_ends_the_older_session(plain_broker: MosquittoServer, name: str) -> None:
    older = shard(plain_broker.port, name, Recorder())
    async with running(older) as task, running(shard(plain_broker.port, name, Recorder())) as newer:
        # It is reset if a ping was on its way, as after a standstill.
        reason = await ended(task)
        assert "closed the connection" in reason or "reset by peer" in reason
        assert not older.connected
        assert not newer.done()


async def test_wrong_password_is_refused_with_the_reason(broker: MosquittoServer, name: str) -> None:
    session = MqttSession(at(broker.port), Credentials(name, "service.new", "wrong"))
    with pytest.raises(Unavailable, match=r"refused: (not authorised|bad user name or password)"):
        await session.run()


async def test_nobody_listening_is_unavailable(relay: TcpRelay) -> None:
    with pytest.raises(Unavailable, match="cannot connect"):
        await MqttSession(at(1), who("x")).run()


async def test_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(connection, "_CLOSE_SECONDS", 1.0)
    async with TcpRelay(0) as relay:
        relay.freeze()
        with pytest.raises(Unavailable):
            await MqttSession(at(relay.port), who("x")).run()


async def test_refused_subscription_is_unavailable(broker: MosquittoServer) -> None:
    device = broker.keys.issue("device", "02:00:00:00:77:01")
    session = MqttSession(at(broker.port), device, reading=Reading(["fleet/up/#"], Recorder()))
    with pytest.raises(Unavailable, match="refused to subscribe to fleet/up/#"):
        await session.run()


async def test_lost_connection_publishes_the_will_and_cancellation_does_not(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    await device.subscribe(f"{name}/lost")
    will = Will(f"{name}/lost", b"gone")
    async with running(shard(relay.port, name, Recorder(), will=will)):
        pass
    assert relay.sent[0].endswith(b"\xe0\x00")
    assert await device.pending() == []
    async with running(shard(relay.port, name, Recorder(), will=will)) as task:
        relay.cut()
        await ended(task)
    assert (await device.message()).payload == b"gone"


async def test_cancellation_leaves_running_handlers_messages_to_the_next(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    first = Recorder(lambda _: asyncio.sleep(3600))
    async with running(shard(relay.port, name, first)):
        await device.publish(f"{name}/up", b"a")
        await until(lambda: first.running == 1)
    assert first.running == 0
    second = Recorder()
    async with running(shard(relay.port, name, second)):
        await until(lambda: second.seen == [b"a"])


async def test_drained_session_has_handled_and_acknowledged_what_came(
    relay: TcpRelay, device: RawClient, name: str
) -> None:
    go = asyncio.Event()

    async def wait(payload: bytes) -> None:
        await go.wait()

    recorder = Recorder(wait)
    session = shard(relay.port, name, recorder, bound=2)
    async with running(session):
        for number in range(6):
            await device.publish(f"{name}/up", b"%d" % number)
        await until(lambda: recorder.running == 2)
        asyncio.get_running_loop().call_later(0.05, go.set)
        await session.drain(PATIENCE)
        done = len(recorder.seen)
        assert done >= 2
        assert recorder.running == 0
    assert len(acknowledged(relay.sent[0])) == done


async def test_half_open_connection_is_noticed(relay: TcpRelay, name: str) -> None:
    session = MqttSession(at(relay.port), who(name), keepalive=2)
    async with running(session) as task:
        relay.freeze()
        assert "pings" in await ended(task)
        assert not session.connected


async def test_idle_connection_stays(relay: TcpRelay, name: str) -> None:
    # Before the fourth ping, the broker would have closed a connection without any.
    session = MqttSession(at(relay.port), who(name), keepalive=6)
    async with running(session) as task:
        await until(lambda: relay.sent[0].count(b"\xc0\x00") >= 4)
        assert not task.done()
        assert session.connected


async def test_publish_reaches_a_subscriber_once(relay: TcpRelay, device: RawClient, name: str) -> None:
    await device.subscribe(f"{name}/down")
    session = MqttSession(at(relay.port), who(name))
    with pytest.raises(Unavailable):
        session.publish(f"{name}/down", b"too early")
    async with running(session):
        session.publish(f"{name}/down", b"order")
        session.publish(f"{name}/down", b"x" * 300)
        assert [found.payload for found in await device.messages(b"x" * 300)] == [b"order", b"x" * 300]
    with pytest.raises(Unavailable):
        session.publish(f"{name}/down", b"too late")


async def test_publishing_to_a_broker_that_does_not_read_is_refused(
    relay: TcpRelay, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CLOSE_SECONDS", 1.0)
    session = MqttSession(at(relay.port), who(name))
    async with running(session):
        relay.freeze()
        with pytest.raises(Overloaded):
            for _ in range(1000):
                session.publish(f"{name}/down", bytes(100_000))


async def test_session_connects_only_once(relay: TcpRelay, name: str) -> None:
    session = MqttSession(at(relay.port), who(name))
    async with running(session):
        pass
    with pytest.raises(RuntimeError):
        await session.run()


async def test_session_is_not_over_before_the_broker_has_read_everything() -> None:
    done = asyncio.Event()
    heard = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x20\x02\x00\x00")
        while not heard.endswith(b"\xe0\x00"):
            heard.extend(await reader.read(1000))
        await done.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        ready = asyncio.Event()
        session = MqttSession(at(server.sockets[0].getsockname()[1]), who("x"))
        task = asyncio.create_task(session.run(ready.set))
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
            task.cancel()
            await until(lambda: heard.endswith(b"\xe0\x00"))
            assert not task.done()
            done.set()
            await asyncio.wait({task})
    assert task.cancelled()
