"""Groups over the REST API, with both kinds of database."""

from collections.abc import AsyncIterator

import pytest

from fleet.client import devices, groups
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.wire.control.devices import DeviceAddition
from fleet.wire.control.groups import GroupAddition, GroupPatch
from tests.support.control_server import FULL, STRANGER, ControlStage

MACS = [f"02:00:00:00:00:0{number}" for number in range(5)]


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        for number, mac in enumerate(MACS[:4]):
            await opened.send(devices.register(DeviceAddition(mac=mac, tags={"site": "ab"[number % 2]})))
        yield opened


async def status(client: AsyncFleetClient, call: Call) -> int:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return refusal.value.status


async def members(client: AsyncFleetClient, group: int, query: str = "", limit: int = 500) -> list[str | None]:
    call = groups.members(group, query, limit)
    return [one.mac async for page in client.pages(call) for one in page.items]


async def test_a_static_group_has_the_members_that_were_added(client: AsyncFleetClient) -> None:
    group = (await client.send(groups.add(GroupAddition(name="vip", notes="n")))).id
    added = await client.send(groups.add_members(group, [*MACS, MACS[0]]))
    assert (added.changed, added.unknown) == (4, [MACS[4]])
    assert await members(client, group, limit=3) == MACS[:4]
    assert await members(client, group, "tag.site=a") == [MACS[0], MACS[2]]
    assert (await client.send(groups.remove_members(group, MACS[:1]))).changed == 1
    found = await client.send(devices.search("group=vip"))
    assert [one.mac for one in found.items] == MACS[1:4]
    await client.send(groups.remove(group))
    assert await status(client, groups.read(group)) == 404
    assert (await client.send(devices.search())).items, "its devices stay"


async def test_the_list_of_groups_goes_on_from_a_cursor_of_its_tenant(
    stage: ControlStage, client: AsyncFleetClient
) -> None:
    for name in "abc":
        await client.send(groups.add(GroupAddition(name=name)))
    found = [one.name async for page in client.pages(groups.listing(limit=2)) for one in page.items]
    assert found == ["a", "b", "c"]
    cursor = (await stage.ask("GET /v1/groups?limit=2")).json()["next"]
    for token, text in ((STRANGER, cursor), (FULL, "1"), (FULL, f"{cursor}x")):
        assert (await stage.ask(f"GET /v1/groups?cursor={text}", token)).json()["code"] == "bad-cursor", text


async def test_a_dynamic_group_has_the_members_that_its_query_means_now(client: AsyncFleetClient) -> None:
    assert await status(client, groups.add(GroupAddition(name="a", query="tag.site<1"))) == 400
    group = await client.send(groups.add(GroupAddition(name="a", query="tag.site=a")))
    assert await members(client, group.id) == [MACS[0], MACS[2]]
    await client.send(devices.tag(MACS[0], {"site": "b"}))
    assert await members(client, group.id) == [MACS[2]]
    assert await status(client, groups.add_members(group.id, MACS[:1])) == 409
    changed = await client.send(groups.change(group.id, GroupPatch(query="tag.site=b")).of_version(1))
    assert (changed.version, await members(client, group.id)) == (2, [MACS[0], MACS[1], MACS[3]])
    assert await status(client, groups.change(group.id, GroupPatch(notes="x")).of_version(1)) == 412
    assert await status(client, groups.remove(group.id).of_version(1)) == 412
    assert await status(client, groups.change(group.id, GroupPatch(query=" "))) == 409
    await client.send(groups.remove(group.id).of_version(2))
    assert await status(client, groups.remove(group.id).of_version(2)) == 404


async def test_names_are_unique_in_a_tenant_and_others_see_nothing(
    stage: ControlStage, client: AsyncFleetClient
) -> None:
    first, second = [await client.send(groups.add(GroupAddition(name=name))) for name in "ab"]
    assert await status(client, groups.add(GroupAddition(name="a"))) == 409
    assert await status(client, groups.change(second.id, GroupPatch(name="a"))) == 409
    assert [page.items[0].name async for page in client.pages(groups.listing(1))] == ["a", "b"]
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as other:
        await other.send(groups.add(GroupAddition(name="a")))
        for call in (
            groups.read(first.id),
            groups.change(first.id, GroupPatch(name="x")),
            groups.remove(first.id),
            groups.members(first.id),
            groups.add_members(first.id, MACS[:1]),
            groups.remove_members(first.id, MACS[:1]),
        ):
            assert await status(other, call) == 404, call
