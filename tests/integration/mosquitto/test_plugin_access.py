"""Who is let in, and what they may publish and subscribe to."""

import base64
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys, Credentials, password
from fleet.wire.topics import down_topic, lost_topic, presence_topic, shard_filters, slot, up_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import Will
from tests.support.process import running

MAC = "02:ac:ce:00:00:01"
OTHER = "02:ac:ce:00:00:02"
NOT_AUTHORISED = 5
REFUSED = 0x80
NOT_AUTHORISED_5 = 0x87


def forged(client_id: str, username: str, key: str = "a-key-for-tests-only-1") -> Credentials:
    """Return credentials with the right password for a client id and user name that do not fit."""
    return Credentials(client_id, username, password(key, client_id, username))


WRONG_KEY = CredentialKeys("new:not-the-key-of-the-broker").issue("device", MAC)
GOOD = CredentialKeys("new:a-key-for-tests-only-1").issue("device", MAC)


@pytest.mark.parametrize(
    "who",
    [
        pytest.param(MAC, id="no user name"),
        pytest.param(Credentials(MAC, "device.new", ""), id="empty password"),
        pytest.param(WRONG_KEY, id="wrong key"),
        pytest.param(Credentials(MAC, "device.new", GOOD.password[:-1]), id="password cut off"),
        pytest.param(Credentials(OTHER, "device.new", GOOD.password), id="foreign client id"),
        pytest.param(Credentials(MAC, "device.old", GOOD.password), id="password of another key"),
        pytest.param(forged(MAC.upper(), "device.new"), id="upper-case MAC"),
        pytest.param(forged("fleet-x", "device.new"), id="device with a service's id"),
        pytest.param(forged(MAC, "service.new"), id="service with a MAC"),
        pytest.param(forged("worker", "service.new"), id="service with a foreign id"),
        pytest.param(forged(MAC, "root.new"), id="unknown kind"),
        pytest.param(forged(MAC, "device.gone"), id="unknown key id"),
    ],
)
async def test_connection_without_the_right_proof_is_refused(clients: Clients, who: Credentials | str) -> None:
    assert await (await clients.stranger()).connect(who) == NOT_AUTHORISED
    assert await (await clients.stranger(level=5)).connect(who) == NOT_AUTHORISED_5


async def test_all_keys_are_valid_at_once(clients: Clients) -> None:
    for username, key in (("device.new", "a-key-for-tests-only-1"), ("device.old", "a-key-for-tests-only-2")):
        assert await (await clients.stranger()).connect(forged(MAC, username, key)) == 0


async def test_device_publishes_to_its_own_topic_only(clients: Clients) -> None:
    service, device = await clients.service(), await clients.device(MAC)
    for topic in ("fleet/up/#", "fleet/presence/#", "fleet/shard/#"):
        assert await service.subscribe(topic) == 0
    other = await clients.device(OTHER)
    for topic in (
        up_topic(OTHER),
        f"fleet/up/{slot(MAC) ^ 1}/{MAC}",
        f"fleet/up/0{slot(MAC)}/{MAC}",
        presence_topic(MAC),
        lost_topic(3),
        down_topic(OTHER),
        down_topic(MAC),
    ):
        await device.publish(topic, b"forged")
    await device.publish(up_topic(MAC), b"own")
    found = await service.messages(b"own")
    assert [message.payload for message in found if message.topic != presence_topic(OTHER)] == [b"own"]
    assert await device.pending() == []
    assert await other.pending() == []


async def test_refusal_of_a_message_does_not_disconnect(clients: Clients) -> None:
    device = await clients.device(MAC, level=5)
    assert await device.publish_acknowledged(up_topic(OTHER), b"forged") == NOT_AUTHORISED_5
    assert await device.publish_acknowledged(up_topic(MAC), b"own") < REFUSED


async def test_retained_messages_are_dropped(tmp_path: Path, keys: CredentialKeys) -> None:
    server = MosquittoServer(tmp_path, keys, {"retain_available": "true"})
    with running(server) as broker:
        async with Clients(broker) as clients:
            service, device = await clients.service(), await clients.device(MAC)
            await service.subscribe("fleet/up/#")
            await device.publish(up_topic(MAC), b"kept", retain=True)
            await device.publish(up_topic(MAC), b"live")
            assert [message.payload for message in await service.messages(b"live")] == [b"live"]
            await service.publish(down_topic(MAC), b"kept", retain=True)
            await service.publish(down_topic(MAC), b"live")
            assert [message.payload for message in await device.messages(b"live")] == [b"live"]


@pytest.mark.parametrize(
    "topic",
    ["#", "+/+/+", "fleet/#", "fleet/down/+", "fleet/up/#", "$SYS/#", "fleet/broker/boot", f"fleet/down/{OTHER}"],
)
async def test_device_may_subscribe_to_nothing_foreign(clients: Clients, topic: str) -> None:
    device = await clients.device(MAC)
    assert await device.subscribe(topic) == REFUSED
    assert await device.subscribe(f"$share/group/{topic}") == REFUSED


async def test_device_may_not_share_its_own_topic(clients: Clients) -> None:
    assert await (await clients.device(MAC)).subscribe(f"$share/group/{down_topic(MAC)}") == REFUSED


async def test_service_may_subscribe_to_what_workers_need(clients: Clients) -> None:
    service = await clients.service()
    wanted = ["fleet/up/#", "fleet/presence/#", "fleet/shard/#", "$SYS/#", "fleet/broker/boot", *shard_filters(15, 16)]
    assert [await service.subscribe(topic, qos=1) for topic in wanted] == [1] * len(wanted)


@pytest.mark.parametrize("topic", ["#", "fleet/#", "fleet/down/#", "fleet/down/+", "$share/group/fleet/up/#"])
async def test_service_may_not_listen_to_what_devices_are_told(clients: Clients, topic: str) -> None:
    assert await (await clients.service()).subscribe(topic) == REFUSED


async def test_service_may_not_speak_for_a_device(clients: Clients) -> None:
    service = await clients.service(level=5)
    for topic in (up_topic(MAC), presence_topic(MAC), "fleet/down/nobody", "fleet/broker/boot", "elsewhere"):
        assert await service.publish_acknowledged(topic, b"forged") == NOT_AUTHORISED_5


async def test_will_of_a_shard_session_is_published(clients: Clients) -> None:
    witness = await clients.service("fleet-witness")
    await witness.subscribe("fleet/shard/#")
    owner = await clients.service("fleet-shard-3", will=Will(lost_topic(3), b"w1"))
    owner.cut()
    message = await witness.message()
    assert (message.topic, message.payload) == (lost_topic(3), b"w1")


async def test_will_of_a_device_cannot_reach_others(clients: Clients) -> None:
    service = await clients.service()
    await service.subscribe("fleet/up/#")
    await service.subscribe("fleet/shard/#")
    device, own = await clients.device(MAC, will=Will(lost_topic(3), b"forged")), await clients.device(OTHER)
    await service.subscribe("fleet/presence/#")
    device.cut()
    assert (await service.message()).topic == presence_topic(MAC)
    await own.publish(up_topic(OTHER), b"own")
    assert [message.payload for message in await service.messages(b"own")] == [b"own"]


def test_password_is_base64_of_a_sha256_digest() -> None:
    assert len(base64.b64decode(GOOD.password)) == 32
