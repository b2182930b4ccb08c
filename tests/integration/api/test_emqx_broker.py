"""A real EMQX with the shipped configuration, asking fleet's api: what devices and services may, and are told."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fleet.adapters.net.mqtt.emqx import Emqx
from fleet.ground.tasks import running
from fleet.roles.api.mqtt_login import PATH
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.topics import down_topic, presence_topic, shard_client_id, slot, up_topic
from tests.conftest import TEST_KEYS
from tests.support.container import has_image
from tests.support.emqx_requests import login_server
from tests.support.emqx_server import API_KEY, IMAGE, EmqxServer
from tests.support.mqtt_raw import RawClient

pytestmark = [
    pytest.mark.skipif(
        not has_image(IMAGE), reason="EMQX is only to be had as a container, and no Docker engine has its image"
    ),
    pytest.mark.asyncio(loop_scope="module"),
]

MAC = "aa:bb:cc:dd:ee:ff"
OTHER = "02:00:00:00:00:01"
REFUSED = 0x80
FORGED = b'{"online":false,"epoch":9007199254740991}'


class Visitors:
    """The clients of one test."""

    def __init__(self, broker: EmqxServer, keys: CredentialKeys) -> None:
        self.broker, self.keys = broker, keys
        self._open: list[RawClient] = []

    async def stranger(self) -> RawClient:
        client = await RawClient.open(self.broker.port)
        self._open.append(client)
        return client

    async def device(self, mac: str = MAC) -> RawClient:
        client = await self.stranger()
        assert await client.connect(self.keys.issue("device", mac)) == 0
        return client

    async def service(self, *filters: str, name: str = "fleet-test", clean: bool = True) -> RawClient:
        client = await self.stranger()
        assert await client.connect(self.keys.issue("service", name), clean=clean) == 0
        for one in filters:
            assert await client.subscribe(one, 1) == 1
        return client

    async def leave(self) -> None:
        for client in self._open:
            await client.discard()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[EmqxServer, CredentialKeys]]:
    keys = CredentialKeys(TEST_KEYS)
    async with login_server(keys, "0.0.0.0") as (_, port):
        directory: Path = tmp_path_factory.mktemp("emqx")
        broker = EmqxServer(directory, f"{port}{PATH}")
        try:
            await asyncio.to_thread(broker.start)
            yield broker, keys
        finally:
            await asyncio.to_thread(broker.discard)


@pytest_asyncio.fixture(loop_scope="module")
async def visitors(site: tuple[EmqxServer, CredentialKeys]) -> AsyncIterator[Visitors]:
    visitors = Visitors(*site)
    yield visitors
    await visitors.leave()


async def hello(device: RawClient, service: RawClient, mac: str = MAC) -> None:
    """Let a device say something that the service hears: from then on it can be answered."""
    await device.publish(up_topic(mac), b"hello")
    heard = await service.message()
    assert (heard.topic, heard.payload) == (up_topic(mac), b"hello")


async def presence(watcher: RawClient) -> dict[str, Any]:
    message = await watcher.message()
    assert message.topic == presence_topic(MAC)
    news: dict[str, Any] = json.loads(message.payload)
    return news


async def test_only_genuine_credentials_get_in(visitors: Visitors) -> None:
    good = visitors.keys.issue("device", MAC)
    for wrong in (
        Credentials(MAC, good.username, "x"),
        Credentials(OTHER, good.username, good.password),
        Credentials("fleet-x", good.username, good.password),
        MAC,
    ):
        assert await (await visitors.stranger()).connect(wrong) in (4, 5)
    assert await (await visitors.stranger()).connect(good) == 0


async def test_a_device_that_never_subscribes_is_answered(visitors: Visitors) -> None:
    service = await visitors.service("fleet/up/#")
    device = await visitors.device()
    await hello(device, service)
    await service.publish(down_topic(MAC), b"answer")
    answer = await device.message()
    assert (answer.topic, answer.payload, answer.qos) == (down_topic(MAC), b"answer", 0)


async def test_a_device_that_subscribes_gets_everything_once(visitors: Visitors) -> None:
    service = await visitors.service("fleet/up/#")
    device = await visitors.device()
    await hello(device, service)
    assert await device.subscribe(down_topic(MAC), 1) == REFUSED
    assert await device.subscribe(down_topic(MAC), 0) == 0
    for payload in (b"1", b"2", b"last"):
        await service.publish(down_topic(MAC), payload)
    assert [one.payload for one in await device.messages(b"last")] == [b"1", b"2", b"last"]


async def test_a_device_reaches_its_own_topics_only(visitors: Visitors) -> None:
    service = await visitors.service("fleet/up/#", "fleet/presence/+/+")
    device, other = await visitors.device(), await visitors.device(OTHER)
    for wanted in ("#", down_topic(OTHER), "fleet/down/+", up_topic(OTHER), "$SYS/#", f"$share/g/{down_topic(MAC)}"):
        try:
            assert await device.subscribe(wanted) == REFUSED, wanted
        except (asyncio.IncompleteReadError, ConnectionError):
            device = await visitors.device()
    for topic in (up_topic(OTHER), down_topic(OTHER), f"fleet/up/{slot(OTHER)}/{MAC}"):
        await device.publish(topic, b"forged")
    await device.publish(presence_topic(MAC), FORGED)
    await device.publish(up_topic(MAC), b"last")
    heard = await service.messages(b"last")
    assert [one.topic for one in heard if one.topic.startswith("fleet/up/")] == [up_topic(MAC)]
    assert not [one for one in heard if one.payload == FORGED]
    assert await other.pending() == []


async def test_presence_rises_with_every_connection(visitors: Visitors) -> None:
    watcher = await visitors.service("fleet/presence/+/+")
    first = await visitors.device()
    came = await presence(watcher)
    assert came["online"] is True
    await asyncio.sleep(0.01)  # epochs have milliseconds
    second = await visitors.device()
    await first.closed()
    news = [await presence(watcher), await presence(watcher)]
    assert {(one["online"], one["epoch"] == came["epoch"]) for one in news} == {(True, False), (False, True)}
    again = next(one for one in news if one["online"])
    assert again["epoch"] > came["epoch"] > 1_600_000_000_000_000
    await second.leave()
    assert await presence(watcher) == {"online": False, "epoch": again["epoch"]}


async def test_a_shards_session_keeps_what_devices_say_while_it_has_no_owner(visitors: Visitors) -> None:
    name = shard_client_id(3)
    owner = await visitors.service("fleet/up/+/+", name=name, clean=False)
    owner.cut()
    device = await visitors.device()
    said = [f"{number}".encode() for number in range(50)]
    for payload in said:
        await device.publish(up_topic(MAC), payload)
    await device.pending()
    heir = await visitors.service(name=name, clean=False)
    assert [one.payload for one in await heir.messages(said[-1])] == said
    await heir.unsubscribe("fleet/up/+/+")


async def test_a_revoked_device_is_closed(visitors: Visitors) -> None:
    device = await visitors.device()
    closer = Emqx(visitors.broker.api_url, API_KEY, visitors.keys)
    async with running("emqx", closer.run), asyncio.timeout(240):
        visitors.keys.revoke([MAC])
        closer.expel([MAC])
        await device.closed()
    mine = Credentials(MAC, *_secret(MAC))
    assert await (await visitors.stranger()).connect(mine) in (4, 5)
    visitors.keys.revoke([])


def _secret(mac: str) -> tuple[str, str]:
    issued = CredentialKeys(TEST_KEYS).issue("device", mac)
    return issued.username, issued.password
