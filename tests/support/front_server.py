"""A front in the test's own event loop, and a worker's view of the broker behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fleet.roles.front import Front, FrontLimits
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.topics import presence_topic
from tests.support.front_client import FrontClient, Received

LOOPBACK = "127.0.0.1"
PATIENT = FrontLimits(connect=240.0, upstream=240.0, stuck=240.0)
"""Limits in time that a busy machine does not pass."""


@asynccontextmanager
async def running_front(
    upstream: str, keys: CredentialKeys, limits: FrontLimits | None = None, port: int = 0, **more: Any
) -> AsyncIterator[Front]:
    """Run a front; cancel it with the block."""
    front = Front(host=LOOPBACK, port=port, upstream=upstream, keys=keys, limits=limits or PATIENT, **more)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(front.run())
        async with asyncio.timeout(240):
            await front.started.wait()
        yield front
        task.cancel()


async def device(
    front: Front, keys: CredentialKeys, mac: str, login: Credentials | None = None, **more: object
) -> FrontClient:
    """Return a connected device, which never subscribes by itself."""
    client = await FrontClient.open(LOOPBACK, front.port)
    mine = login or keys.issue("device", mac)
    assert await client.connect(mac, mine.username, mine.password, **more) == 0
    return client


async def watcher(port: int, *filters: str, client_id: str = "") -> FrontClient:
    """Return a client of the broker itself, subscribed at QoS 1."""
    client = await FrontClient.open(LOOPBACK, port)
    assert await client.connect(client_id) == 0
    if filters:
        assert set(await client.subscribe(*((one, 1) for one in filters))) == {1}
    return client


async def presence(worker: FrontClient, mac: str) -> dict[str, object]:
    """Return the next message, which must be this device's presence."""
    message: Received = await worker.message()
    assert message.topic == presence_topic(mac)
    news: dict[str, object] = json.loads(message.payload)
    return news
