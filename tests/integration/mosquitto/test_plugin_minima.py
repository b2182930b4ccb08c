"""Generations that count no longer, while the broker runs and without a signal to it."""

import asyncio

from fleet.wire.identity import CredentialKeys, Credentials, Policy
from fleet.wire.presence import parse
from fleet.wire.topics import presence_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import RawClient

MAC = "02:6d:69:00:00:01"
OTHER = "02:6d:69:00:00:02"
LIMIT = 240
PAUSE = 0.05
"""Seconds between two tries: a loop without one costs a core."""


def first(clients: Clients, mac: str, generation: int, policy: Policy = "first") -> Credentials:
    return clients.keys.issue("device", mac, policy=policy, generation=generation)


async def admitted(clients: Clients, credentials: Credentials) -> RawClient:
    client = await clients.stranger()
    assert await client.connect(credentials) == 0
    return client


async def until_refused(clients: Clients, credentials: Credentials) -> None:
    async with asyncio.timeout(LIMIT):
        while await (await clients.stranger()).connect(credentials) == 0:
            await asyncio.sleep(PAUSE)


async def until_ended(client: RawClient) -> None:
    async with asyncio.timeout(LIMIT):
        await client.closed()


async def test_older_generation_is_ended_and_refused_and_the_new_one_goes_on(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    watcher = await own_clients.service("fleet-watcher")
    await watcher.subscribe(presence_topic(MAC), qos=1)
    old = await admitted(own_clients, first(own_clients, MAC, 2))
    other = await admitted(own_clients, first(own_clients, OTHER, 2))
    own_broker.write_revoked(f">=3 {MAC}")
    await until_ended(old)
    assert await (await own_clients.stranger()).connect(first(own_clients, MAC, 2)) == 5
    assert await (await own_clients.stranger(level=5)).connect(first(own_clients, MAC, 2)) == 0x87
    assert await (await own_clients.stranger()).connect(own_clients.keys.issue("device", MAC)) == 5
    new = await admitted(own_clients, first(own_clients, MAC, 3))
    told = [parse((await watcher.message()).payload) for _ in range(3)]
    assert [one is not None and (one.online, one.user) for one in told] == [
        (True, "device.new.first.2"),
        (False, ""),
        (True, "device.new.first.3"),
    ]
    own_broker.write_revoked(f">=3 {MAC}", f">=4 {OTHER}")
    await until_ended(other)
    assert await new.pending() == []


async def test_minimum_of_all_ends_what_was_issued_without_a_generation(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    old_form = await own_clients.device(MAC)
    nothing_proved = await admitted(own_clients, first(own_clients, OTHER, 0, "open"))
    proved = await admitted(own_clients, first(own_clients, "02:6d:69:00:00:03", 1, "code"))
    service = await own_clients.service()
    own_broker.write_revoked(">=1 *")
    await until_ended(old_form)
    await until_ended(nothing_proved)
    await until_refused(own_clients, own_clients.keys.issue("device", MAC))
    assert await proved.pending() == [] == await service.pending()
    await admitted(own_clients, first(own_clients, MAC, 1, "closed"))
    own_broker.write_revoked()
    async with asyncio.timeout(LIMIT):
        while await (await own_clients.stranger()).connect(own_clients.keys.issue("device", OTHER)):
            await asyncio.sleep(PAUSE)


async def test_damaged_file_lowers_no_minimum(own_broker: MosquittoServer, own_clients: Clients) -> None:
    own_broker.write_revoked(f">=3 {MAC}")
    await until_refused(own_clients, first(own_clients, MAC, 2))
    own_broker.write_revoked(f">=2 {MAC}", ">=many *", f">=5 {OTHER}")
    await until_refused(own_clients, first(own_clients, OTHER, 4))
    await until_refused(own_clients, first(own_clients, MAC, 2))
    assert "line 2 of" in own_broker.log


async def test_lost_file_lowers_no_minimum(own_broker: MosquittoServer, own_clients: Clients) -> None:
    own_broker.write_revoked(">=1 *")
    await until_refused(own_clients, own_clients.keys.issue("device", MAC))
    (own_broker.directory / "revoked").unlink()
    async with asyncio.timeout(LIMIT):
        while "the old list of revoked devices stays valid" not in own_broker.log:
            await admitted(own_clients, first(own_clients, OTHER, 1))
            await asyncio.sleep(PAUSE)
    await until_refused(own_clients, own_clients.keys.issue("device", MAC))


async def test_minimum_counts_at_the_start_and_after_a_signal(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    own_broker.stop()
    own_broker.write_revoked(f">=2 {MAC}")
    own_broker.start()
    assert await (await own_clients.stranger()).connect(first(own_clients, MAC, 1)) == 5
    device = await admitted(own_clients, first(own_clients, MAC, 2))
    own_broker.write_revoked(f">=3 {MAC}")
    own_broker.reload()
    await until_ended(device)


async def test_retired_key_ends_devices_whatever_their_generation(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    old, new = CredentialKeys("old:a-key-for-tests-only-2"), own_clients.keys
    with_old = [
        await admitted(own_clients, old.issue("device", MAC, policy="first", generation=7)),
        await admitted(own_clients, old.issue("device", OTHER)),
    ]
    with_new = await admitted(own_clients, new.issue("device", "02:6d:69:00:00:03", policy="first", generation=7))
    own_broker.write_keys("new a-key-for-tests-only-1\n")
    for client in with_old:
        await until_ended(client)
    assert await with_new.pending() == []
