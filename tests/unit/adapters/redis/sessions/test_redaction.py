"""What a device's next turns know after its history was forgotten; single turns are tested with control."""

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.redaction import forget_history

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


async def keep(store: Store, mac: str, state: str) -> None:
    """Keep something of each kind."""
    keys, client = store.keys, store.client
    await client.hset(keys.turn(mac), mapping={"turn": "t1", "state": state})
    await client.rpush(keys.history(mac), "{}")
    await client.hset(keys.conversation(mac), "n", "1")
    await client.rpush(keys.reports(mac), "1 the door is open")


async def kept(store: Store, mac: str) -> list[str]:
    keys = store.keys
    names = (keys.turn(mac), keys.history(mac), keys.conversation(mac), keys.reports(mac))
    return [name for name in names if await store.client.exists(name)]


@pytest.mark.parametrize("state", ["done", "cut", "running"])
async def test_nothing_is_left_but_the_turn_that_runs_and_what_other_devices_know(store: Store, state: str) -> None:
    for mac in (MAC, OTHER):
        await keep(store, mac, state)
    await forget_history(store, MAC)
    assert await kept(store, MAC) == ([store.keys.turn(MAC)] if state == "running" else [])
    assert len(await kept(store, OTHER)) == 4
