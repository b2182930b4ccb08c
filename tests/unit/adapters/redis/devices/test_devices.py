from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.shards.owner import Owner

MAC = "aa:bb:cc:dd:ee:ff"


async def test_the_tools_of_a_device_are_known_until_it_connects_again(store: Store, owner: Owner) -> None:
    devices, tools = Devices(store), ToolLists(store)
    await devices.appear(MAC, online=True, epoch=5, owner=owner)
    assert not (await devices.read(MAC)).tools_known
    await tools.write(owner, MAC, b"[]", {"tep": (await devices.read(MAC)).epoch})
    assert (await devices.read(MAC)).tools_known
    await devices.appear(MAC, online=True, epoch=6, owner=owner)
    assert not (await devices.read(MAC)).tools_known
