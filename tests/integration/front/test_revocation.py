"""Revoked devices at the front."""

import asyncio

from fleet.wire.identity import Keys
from tests.support.front_client import FrontClient
from tests.support.front_server import LOOPBACK, device, presence, running_front, watcher
from tests.support.mosquitto_server import MosquittoServer

MAC, OTHER = "02:7e:00:00:00:01", "02:7e:00:00:00:02"


async def test_a_revoked_device_is_put_out_and_stays_out(plain_broker: MosquittoServer) -> None:
    keys = Keys("k1:a-key-of-this-test-only")
    async with running_front(plain_broker.url, keys) as front:
        worker = await watcher(plain_broker.port, f"fleet/presence/+/{MAC}")
        revoked, untouched = await device(front, keys, MAC), await device(front, keys, OTHER)
        assert (await presence(worker, MAC))["online"] is True
        keys.revoke([MAC])
        front.expel([MAC, "02:7e:00:00:00:03"])
        async with asyncio.timeout(5):
            await revoked.closed()
        assert (await presence(worker, MAC))["online"] is False
        await untouched.ping()
        again, mine = await FrontClient.open(LOOPBACK, front.port), keys.issue("device", MAC)
        assert await again.connect(MAC, mine.username, mine.password) == 5
        keys.revoke([])
        await device(front, keys, MAC)
