"""Revoked devices at the front."""

import asyncio

from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.ground.tasks import running
from fleet.wire.identity import CredentialKeys, Credentials
from tests.support.front_client import FrontClient
from tests.support.front_server import LOOPBACK, device, presence, running_front, watcher
from tests.support.mosquitto_server import MosquittoServer
from tests.support.redis_store import opened

MAC, OTHER = "02:7e:00:00:00:01", "02:7e:00:00:00:02"


async def test_a_revoked_device_is_put_out_and_stays_out(plain_broker: MosquittoServer) -> None:
    keys = CredentialKeys("k1:a-key-of-this-test-only")
    async with running_front(plain_broker.url, keys) as front:
        worker = await watcher(plain_broker.port, f"fleet/presence/+/{MAC}")
        revoked, untouched = await device(front, keys, MAC), await device(front, keys, OTHER)
        assert (await presence(worker, MAC))["online"] is True
        keys.revoke([MAC])
        front.expel([MAC, "02:7e:00:00:00:03"])
        async with asyncio.timeout(240):
            await revoked.closed()
        assert (await presence(worker, MAC))["online"] is False
        await untouched.ping()
        again, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", MAC)
        assert await again.connect(MAC, mine.username, mine.password) == 5
        keys.revoke([])
        await device(front, keys, MAC)


async def connect(port: int, login: Credentials) -> int:
    client = await FrontClient.open(LOOPBACK, port)
    return await client.connect(login.client_id, login.username, login.password)


async def test_an_older_generation_is_put_out_and_the_new_one_comes_in(
    plain_broker: MosquittoServer, redis_url: str
) -> None:
    keys = CredentialKeys("k1:a-key-of-this-test-only")
    old, second, third = (
        keys.issue("device", MAC, policy="first", generation=1),
        keys.issue("device", MAC, policy="first", generation=2),
        keys.issue("device", MAC, policy="closed", generation=3),
    )
    async with (
        opened(redis_url) as store,
        running_front(plain_broker.url, keys) as front,
        running("access", AccessWatch(store, keys, expel=front.expel).run),
    ):
        worker = await watcher(plain_broker.port, f"fleet/presence/+/{MAC}")
        first, other = await device(front, keys, MAC, old), await device(front, keys, OTHER)
        assert (await presence(worker, MAC))["user"] == "device.k1.first.1"
        await Revocations(store).require(MAC, 2)
        async with asyncio.timeout(240):
            await first.closed()
        assert "user" not in await presence(worker, MAC)
        assert await connect(front.port, old) == 5
        assert await connect(front.port, keys.issue("device", MAC)) == 5
        newer = await device(front, keys, MAC, second)
        assert (await presence(worker, MAC))["user"] == "device.k1.first.2"
        # Of all: the old form of a user name, too, is worth nothing now.
        await other.ping()
        await Revocations(store).require_all(1)
        async with asyncio.timeout(240):
            await other.closed()
        assert await connect(front.port, keys.issue("device", OTHER)) == 5
        await newer.ping()
        # A higher minimum of its own stays when that of all falls.
        await Revocations(store).require(MAC, 3)
        await Revocations(store).require_all(0)
        async with asyncio.timeout(240):
            await newer.closed()
            while await connect(front.port, keys.issue("device", OTHER)):
                pass
        assert await connect(front.port, second) == 5
        assert await connect(front.port, third) == 0
        assert front.counts["outdated"] == 3
