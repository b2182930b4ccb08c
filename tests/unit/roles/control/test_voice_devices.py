"""Which device a browser is."""

from dataclasses import replace

from fleet.roles.control.access import Principal
from fleet.roles.control.voice_devices import VoiceDevices
from tests.support.memory_store import memory_store


async def test_the_device_of_a_browser_cannot_be_foretold() -> None:
    store = await memory_store()
    who = Principal("token", "dashboard", 1, frozenset(), token=7)
    one, other = VoiceDevices(store, b"one"), VoiceDevices(store, b"other")
    assert one.mac_of(who) == one.mac_of(replace(who, name="renamed")) != other.mac_of(who)
    assert one.mac_of(who) != one.mac_of(replace(who, token=8)), "a name that is given again names another device"
    await store.close()
