"""Revoked devices, and keys that come and go, while the broker runs and without a signal to it."""

import asyncio
from pathlib import Path

from fleet.wire.identity import CredentialKeys
from fleet.wire.presence import parse
from fleet.wire.topics import down_topic, lost_topic, presence_topic, up_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import RawClient, Will
from tests.support.process import running
from tests.support.until import until

MAC = "02:4e:70:00:00:01"
OTHER = "02:4e:70:00:00:02"
NEW, OLD = CredentialKeys("new:a-key-for-tests-only-1"), CredentialKeys("old:a-key-for-tests-only-2")
ADMINISTRATIVE_ACTION = 0x98
LIMIT = 240
PAUSE = 0.05
"""Seconds between two tries: a loop without one costs a core."""


async def until_refused(clients: Clients, mac: str, keys: CredentialKeys | None = None) -> None:
    async with asyncio.timeout(LIMIT):
        while await (await clients.stranger()).connect((keys or clients.keys).issue("device", mac)) == 0:
            await asyncio.sleep(PAUSE)


async def until_admitted(clients: Clients, mac: str, keys: CredentialKeys | None = None) -> RawClient:
    async with asyncio.timeout(LIMIT):
        while True:
            client = await clients.stranger()
            if await client.connect((keys or clients.keys).issue("device", mac)) == 0:
                return client
            await asyncio.sleep(PAUSE)


async def until_ended(client: RawClient) -> None:
    async with asyncio.timeout(LIMIT):
        await client.closed()


async def test_revoked_device_is_ended_and_refused(own_broker: MosquittoServer, own_clients: Clients) -> None:
    device, other = await own_clients.device(MAC), await own_clients.device(OTHER)
    own_broker.write_revoked(MAC)
    await until_ended(device)
    assert await (await own_clients.stranger()).connect(own_clients.keys.issue("device", MAC)) == 5
    assert await (await own_clients.stranger(level=5)).connect(own_clients.keys.issue("device", MAC)) == 0x87
    assert await other.pending() == []
    await own_clients.device(OTHER)


async def test_end_of_a_revoked_connection_is_told(own_broker: MosquittoServer, own_clients: Clients) -> None:
    watcher, service = await own_clients.service("fleet-watcher"), await own_clients.service(level=5)
    await watcher.subscribe(presence_topic(MAC), qos=1)
    device = await own_clients.device(MAC, level=5, will=Will(up_topic(MAC), b"last words"))
    own_broker.write_revoked(MAC)
    await until_ended(device)
    told = [parse((await watcher.message()).payload) for _ in range(2)]
    assert [one is not None and one.online for one in told] == [True, False]
    assert await service.publish_acknowledged(down_topic(MAC), b"late") == 0x87


async def test_mqtt_5_device_is_told_that_it_was_an_operator(own_broker: MosquittoServer, own_clients: Clients) -> None:
    device = await own_clients.device(MAC, level=5)
    own_broker.write_revoked(MAC)
    async with asyncio.timeout(LIMIT):
        assert (await device.until(14))[0] == ADMINISTRATIVE_ACTION


async def test_device_that_is_taken_off_the_list_comes_in_again(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    own_broker.write_revoked(MAC)
    await until_refused(own_clients, MAC)
    own_broker.write_revoked()
    await until_admitted(own_clients, MAC)


async def test_list_is_read_at_the_start(own_broker: MosquittoServer, own_clients: Clients) -> None:
    own_broker.stop()
    own_broker.write_revoked(MAC)
    own_broker.start()
    assert await (await own_clients.stranger()).connect(own_clients.keys.issue("device", MAC)) == 5
    await own_clients.device(OTHER)


async def test_list_counts_at_once_after_a_signal(own_broker: MosquittoServer, own_clients: Clients) -> None:
    """The broker itself asks again after a signal; the plugin, which looks now and then, may be earlier by chance."""
    ended_by_plugin = 0
    async with asyncio.timeout(LIMIT):
        while True:
            device = await own_clients.device(MAC)
            own_broker.write_revoked(MAC)
            own_broker.reload()
            await until_ended(device)
            before, ended_by_plugin = ended_by_plugin, own_broker.log.count("fleet: ended the connection")
            if ended_by_plugin == before:
                return
            own_broker.write_revoked()
            await until_admitted(own_clients, MAC)


async def test_damaged_list_adds_devices_and_lets_nobody_in(own_broker: MosquittoServer, own_clients: Clients) -> None:
    own_broker.write_revoked(MAC)
    await until_refused(own_clients, MAC)
    own_broker.write_revoked("what is this", OTHER)
    await until_refused(own_clients, OTHER)
    await until_refused(own_clients, MAC)
    assert "line 1 of" in own_broker.log


async def test_lost_list_lets_nobody_in(own_broker: MosquittoServer, own_clients: Clients) -> None:
    own_broker.write_revoked(MAC)
    await until_refused(own_clients, MAC)
    (own_broker.directory / "revoked").unlink()
    async with asyncio.timeout(LIMIT):
        while "the old list of revoked devices stays valid" not in own_broker.log:
            await own_clients.device(OTHER)
            await asyncio.sleep(PAUSE)
    await until_refused(own_clients, MAC)


def test_broker_does_not_start_with_a_list_that_it_cannot_read(own_broker: MosquittoServer) -> None:
    own_broker.stop()
    (own_broker.directory / "revoked").mkdir()
    own_broker.process.start_failing()
    assert "cannot open" in own_broker.log


async def test_option_names_the_list(tmp_path: Path, keys: CredentialKeys) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f"{MAC}\n")
    # A plugin's options must follow it, so this one rides on the other.
    options = {"plugin_opt_keys_file": f"{tmp_path}/keys\nplugin_opt_revoked_file {elsewhere}"}
    with running(MosquittoServer(tmp_path, keys, options)) as broker:
        async with Clients(broker) as clients:
            assert await (await clients.stranger()).connect(keys.issue("device", MAC)) == 5


async def test_keys_change_without_a_signal(own_broker: MosquittoServer, own_clients: Clients) -> None:
    newest = CredentialKeys("newest:a-key-for-tests-only-3")
    with_new = await own_clients.device(MAC)
    with_old = await own_clients.stranger()
    assert await with_old.connect(OLD.issue("device", OTHER)) == 0
    own_broker.write_keys(newest.as_file() + NEW.as_file() + OLD.as_file())
    await until_admitted(own_clients, "02:4e:70:00:00:03", newest)
    await until_admitted(own_clients, "02:4e:70:00:00:04", OLD)
    own_broker.write_keys(newest.as_file() + NEW.as_file())
    await until_ended(with_old)
    await until_refused(own_clients, OTHER, OLD)
    assert await with_new.pending() == []


async def test_key_with_another_secret_ends_the_sessions_of_the_first(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    device = await own_clients.device(MAC)
    own_broker.write_keys("new a-key-for-tests-only-4\n" + OLD.as_file())
    await until_ended(device)
    await until_admitted(own_clients, MAC, CredentialKeys("new:a-key-for-tests-only-4"))


async def test_retired_key_ends_services_and_their_wills_are_sent(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    witness = await own_clients.service("fleet-witness")
    await witness.subscribe("fleet/shard/#")
    shard = await own_clients.stranger()
    credentials = OLD.issue("service", "fleet-shard-3")
    assert await shard.connect(credentials, will=Will(lost_topic(3), b"w1")) == 0
    own_broker.write_keys(NEW.as_file())
    await until_ended(shard)
    assert (await witness.message()).topic == lost_topic(3)


async def test_damaged_keys_change_nothing(own_broker: MosquittoServer, own_clients: Clients) -> None:
    device = await own_clients.device(MAC)
    own_broker.write_keys("new short\n")
    async with asyncio.timeout(LIMIT):
        while "the old keys stay valid" not in own_broker.log:
            await own_clients.device(OTHER)
            await asyncio.sleep(PAUSE)
    await own_clients.device(OTHER)
    assert await device.pending() == []


def test_idle_broker_looks_at_its_files_too(own_broker: MosquittoServer) -> None:
    own_broker.write_revoked(MAC)
    until(lambda: "1 devices are revoked" in own_broker.log, LIMIT)


async def test_broker_under_load_looks_at_its_files_too(own_broker: MosquittoServer, own_clients: Clients) -> None:
    device, service = await own_clients.device(MAC), await own_clients.service()
    other = await own_clients.device(OTHER)
    own_broker.write_revoked(MAC)
    async with asyncio.timeout(LIMIT):
        while "fleet: ended the connection" not in own_broker.log:
            for _ in range(50):
                await service.publish(down_topic(OTHER), b"x" * 200)
            await other.pending()
    await until_ended(device)
