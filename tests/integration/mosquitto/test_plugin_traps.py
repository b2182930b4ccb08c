"""What Mosquitto does behind a plugin's back, found by experiment; each of these once broke something."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.presence import parse
from fleet.wire.topics import down_topic, presence_topic, up_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import SUBACK, RawClient, Will, connect_packet, frame, string
from tests.support.plugin_build import build_plugin
from tests.support.process import running

MAC = "02:70:a9:00:00:01"
OTHER = "02:70:a9:00:00:02"
LARGEST_PACKET = 131072
BLOCKING = {
    *("socket", "connect", "bind", "accept", "recv", "send", "poll", "select", "getaddrinfo"),
    *("sleep", "usleep", "nanosleep", "fork", "system", "popen", "pthread_create", "pthread_mutex_lock"),
}


async def test_offline_device_with_a_clean_session_finds_nothing(clients: Clients) -> None:
    service = await clients.service()
    deaf = await clients.stranger(acknowledge=False)
    assert await deaf.connect(clients.keys.issue("device", MAC)) == 0
    await service.publish_acknowledged(down_topic(MAC), b"not acknowledged")
    await deaf.message()
    await deaf.leave()
    await service.publish_acknowledged(down_topic(MAC), b"while away")
    device = await clients.device(MAC)
    await service.publish(down_topic(MAC), b"now")
    assert [one.payload for one in await device.messages(b"now")] == [b"now"]


async def test_delivery_asks_for_no_right_to_read_and_a_subscription_does(clients: Clients) -> None:
    """Without that right each message comes once, by delivery, and never a second time by subscription."""
    device, service = await clients.device(MAC, level=5), await clients.service()
    await service.publish(down_topic(MAC), b"before")
    # MQTT 5 with an identifier of the subscription, at QoS 1.
    await device.send(frame(0x82, b"\0\1" + b"\x02\x0b\x07" + string(down_topic(MAC)) + b"\x01"))
    assert (await device.until(SUBACK))[-1] == 1
    for _ in range(20):
        await service.publish_acknowledged(down_topic(MAC), b"order")
    await service.publish(down_topic(MAC), b"last")
    payloads = [one.payload for one in await device.messages(b"last")]
    assert payloads == [b"before", *[b"order"] * 20, b"last"]
    assert await device.pending() == []


async def test_stalled_device_gets_the_first_messages_in_order(tmp_path: Path, keys: CredentialKeys) -> None:
    """Mosquitto queues for it up to a limit and drops the rest; nobody else waits."""
    with running(MosquittoServer(tmp_path, keys, {"max_queued_messages": "50"})) as broker:
        async with Clients(broker) as clients:
            stalled, other = await clients.device(MAC), await clients.device(OTHER)
            service = await clients.service()
            filler = b"x" * 10_000
            for number in range(3000):
                await service.publish(down_topic(MAC), b"%d " % number + filler)
            await service.publish(down_topic(OTHER), b"order")
            assert (await other.message()).payload == b"order"
            numbers = []
            while (payload := (await stalled.message()).payload) != b"later":
                numbers.append(int(payload.split()[0]))
                await service.publish(down_topic(MAC), b"later")  # one of them finds room again
            assert numbers == list(range(len(numbers)))
            assert 50 < len(numbers) < 3000


async def test_payload_of_200_kilobytes_passes_where_it_is_allowed(tmp_path: Path, keys: CredentialKeys) -> None:
    with running(MosquittoServer(tmp_path, keys, {"max_packet_size": "300000"})) as broker:
        async with Clients(broker) as clients:
            device, service = await clients.device(MAC), await clients.service()
            await service.publish(down_topic(MAC), b"x" * 200_000)
            assert (await device.message()).payload == b"x" * 200_000


@pytest.mark.parametrize("sender", ["device", "service"])
async def test_oversized_message_ends_its_sender_and_reaches_nobody(clients: Clients, sender: str) -> None:
    service, device = await clients.service("fleet-reader"), await clients.device(MAC)
    await service.subscribe(up_topic(OTHER))
    loud = await (clients.device(OTHER) if sender == "device" else clients.service("fleet-loud"))
    topic = up_topic(OTHER) if sender == "device" else down_topic(MAC)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await loud.publish(topic, b"x" * LARGEST_PACKET)
        await loud.pending()
    assert await device.pending() == []
    assert await service.pending() == []


async def test_announced_giant_is_refused_before_it_is_sent(clients: Clients) -> None:
    for first in (b"\x10", b"\x30", b"\x82"):
        stranger = await clients.stranger()
        await stranger.send(first + b"\xff\xff\xff\x7f")  # 256 MB
        await stranger.closed()


async def test_retained_message_ends_its_sender_and_is_not_kept(clients: Clients) -> None:
    """The shipped configuration retains nothing at all; the plugin refuses it also where the broker would."""
    device, service = await clients.device(MAC), await clients.service()
    await service.publish(down_topic(MAC), b"kept", retain=True)
    await service.closed()
    assert await device.pending() == []
    late = await clients.device(MAC)
    assert await late.pending() == []


@pytest.mark.parametrize("topic", ["$SYS/x", "$SYS/broker/fleet/devices", "$CONTROL/dynamic-security/v1", "#", "+/x"])
async def test_nobody_publishes_to_the_brokers_own_topics_or_wildcards(clients: Clients, topic: str) -> None:
    reader = await clients.service("fleet-reader")
    await reader.subscribe("$SYS/x")
    for sender in (await clients.service(), await clients.device(MAC)):
        await sender.publish(topic, b"forged")
        try:
            await sender.pending()
        except (asyncio.IncompleteReadError, ConnectionError):
            assert "#" in topic or "+" in topic
    assert await reader.pending() == []


async def test_will_is_no_way_to_a_device(clients: Clients) -> None:
    """Mosquitto does not ask the plugin about Wills when it sends them: they go to subscribers only."""
    device = await clients.device(MAC)
    await device.subscribe(down_topic(MAC))
    for client in (
        await clients.device(OTHER, will=Will(down_topic(MAC), b"forged")),
        await clients.service("fleet-dying", will=Will(down_topic(MAC), b"forged")),
    ):
        client.cut()
    watcher = await clients.service("fleet-watcher")
    await watcher.publish(down_topic(MAC), b"last")
    assert [one.payload for one in await device.messages(b"last")] == [b"last"]


@pytest.mark.parametrize("client_id", ["", "fleet", "fleet/x", MAC[:-1], MAC + ":00", "auto-1", "é" * 30])
async def test_client_id_that_names_nobody_is_refused(clients: Clients, client_id: str) -> None:
    for who in (client_id, clients.keys.issue("device", client_id), clients.keys.issue("service", client_id)):
        assert await (await clients.stranger()).connect(who) in (2, 5)


async def test_stranger_cannot_take_over_a_connection(clients: Clients) -> None:
    device = await clients.device(MAC)
    for who in (MAC, Credentials(MAC, "device.new", "x" * 44), clients.keys.issue("device", OTHER)):
        bad = Credentials(MAC, who.username, who.password) if isinstance(who, Credentials) else who
        assert await (await clients.stranger()).connect(bad) == 5
    assert await device.pending() == []


async def test_connection_that_ends_before_its_connack_is_told_as_offline(clients: Clients) -> None:
    watcher = await clients.service("fleet-watcher")
    await watcher.subscribe("fleet/presence/#", qos=1)
    hello = connect_packet(clients.keys.issue("device", MAC))
    for number in range(50):
        hasty = await clients.stranger()
        # Every other one also breaks the protocol right after it was let in.
        await hasty.send(hello + (hello if number % 2 else b""))
        hasty.cut()
    last = await clients.device(OTHER)
    told: dict[int, list[bool]] = {}
    while (message := await watcher.message()).topic != presence_topic(OTHER):
        found = parse(message.payload)
        assert found is not None
        told.setdefault(found.epoch, []).append(found.online)
    await last.leave()
    ends = [states for states in told.values() if len(states) == 2]
    assert all(states == [True, False] for states in ends)
    service = await clients.service(level=5)
    async with asyncio.timeout(240):
        while await service.publish_acknowledged(down_topic(MAC), b"order") != 0x87:
            pass


async def test_broker_that_calls_no_tick_refuses_revoked_devices_at_their_next_connect(
    tmp_path: Path, keys: CredentialKeys
) -> None:
    """Mosquitto 2.0 with per_listener_settings, where options of a listener must follow it."""
    server = MosquittoServer(tmp_path, keys)
    _per_listener(tmp_path / "mosquitto.conf")
    with running(server) as broker:
        async with Clients(broker) as clients:
            device, service = await clients.device(MAC), await clients.service(level=5)
            assert await service.publish_acknowledged(down_topic(MAC), b"order") == 0x10
            assert (await device.message()).payload == b"order"
            broker.write_revoked(MAC)
            async with asyncio.timeout(240):
                while await (await clients.stranger()).connect(keys.issue("device", MAC)) == 0:
                    pass


def _per_listener(config: Path) -> None:
    """Turn a configuration into one where the security settings belong to the listener."""
    lines = config.read_text().splitlines()
    security = [line for line in lines if line.startswith(("allow_anonymous", "plugin"))]
    rest = ["true".join(line.rsplit("false", 1)) if line.startswith("per_listener") else line for line in lines]
    first = next(line for line in rest if line.startswith("per_listener"))
    kept = [line for line in rest if line not in security and line != first]
    listener = next(at for at, line in enumerate(kept) if line.startswith("listener "))
    config.write_text("\n".join([first, *kept[: listener + 1], *security, *kept[listener + 1 :], ""]))


@pytest.mark.slow
async def test_device_that_falls_silent_is_told_as_offline(own_clients: Clients) -> None:
    watcher = await own_clients.service("fleet-watcher")
    await watcher.subscribe(presence_topic(MAC), qos=1)
    silent = await own_clients.stranger()
    await silent.send(connect_packet(own_clients.keys.issue("device", MAC), keepalive=1))
    assert (parse((await watcher.message()).payload) or pytest.fail()).online
    end = json.loads((await watcher.message()).payload)
    assert end["online"] is False
    assert end.get("expired") in (None, True), "Mosquitto 2.0 does not say why, 2.1 does"


async def test_broker_tells_what_it_refused(tmp_path: Path, keys: CredentialKeys) -> None:
    with running(MosquittoServer(tmp_path, keys)) as broker:
        async with Clients(broker) as clients:
            watcher = await clients.service("fleet-watcher")
            await watcher.subscribe("$SYS/broker/fleet/#")
            device, service = await clients.device(MAC), await clients.service()
            await (await clients.stranger()).connect(OTHER)
            await device.publish(up_topic(OTHER), b"forged")
            await device.subscribe("#")
            await service.publish(down_topic(MAC), b"order")
            await service.publish_acknowledged(down_topic(OTHER), b"order")
            await until_told(
                watcher,
                {
                    "devices": 1,
                    "revoked": 0,
                    "minima": 0,
                    "delivered": 1,
                    "offline": 1,
                    "refused/connections": 1,
                    "refused/messages": 1,
                    "refused/subscriptions": 1,
                },
            )


async def until_told(watcher: RawClient, counts: dict[str, int]) -> None:
    """Wait for exactly these figures: the broker tells them now and then, perhaps in the midst of what they count."""
    found: dict[str, int] = {}
    async with asyncio.timeout(240):
        while found != counts:
            told = await watcher.message()
            found[told.topic.removeprefix("$SYS/broker/fleet/")] = int(told.payload)


def test_plugin_calls_nothing_that_waits() -> None:
    """One thread serves all connections; looking at two files once a second is all that touches a disk."""
    symbols = subprocess.run(["nm", "-D", str(build_plugin())], capture_output=True, text=True, check=True).stdout
    wanted = {line.split(" U ")[1].split("@")[0] for line in symbols.splitlines() if " U " in line}
    assert {"stat", "open", "mosquitto_broker_publish"} <= wanted
    assert not BLOCKING & wanted
