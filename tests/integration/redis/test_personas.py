import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.sessions.personas import Personas
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.server_tools import Persona
from fleet.ground.errors import Fenced


async def read(store: Store, mac: str) -> Persona:
    return (await Conversations(store, 60).context(mac, 10)).persona


async def test_a_device_without_a_choice_has_no_persona(store: Store, mac: str) -> None:
    assert await read(store, mac) == Persona()


async def test_a_persona_is_read_with_all_else_that_a_turn_needs(store: Store, owner: Owner, mac: str) -> None:
    await Personas(store).keep(owner, mac, Persona("de", "Pip the Robot"))
    assert await read(store, mac) == Persona("de", "Pip the Robot")
    await Personas(store).keep(owner, mac, Persona("fr"))
    assert await read(store, mac) == Persona("fr")


async def test_a_persona_is_kept_as_long_as_the_device_is_known(store: Store, owner: Owner, mac: str) -> None:
    await Personas(store).keep(owner, mac, Persona("de"))
    assert 0 < await store.client.ttl(store.keys.persona(mac)) <= DEVICE_SECONDS


async def test_who_lost_the_shard_writes_no_persona(store: Store, owner: Owner, mac: str) -> None:
    stranger = Owner("worker-2", owner.fence)
    with pytest.raises(Fenced):
        await Personas(store).keep(stranger, mac, Persona("de"))
    assert await read(store, mac) == Persona()


async def test_a_worker_of_an_older_version_is_given_the_answer_that_it_knows(store: Store, mac: str) -> None:
    keys = store.keys
    old = [keys.tools(mac), keys.history(mac), keys.reports(mac)]
    assert await store.call("fleet_turn_context", old, [10, 1000]) == ["", "0"]
