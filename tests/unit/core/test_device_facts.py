"""What is known of a device; its copy in the registry is tested with SQL."""

from fleet.core.device_facts import DOCTOR, DeviceFacts
from fleet.wire.topics import canonical_mac


def test_a_device_of_the_doctor_has_a_usable_mac_that_no_board_has() -> None:
    facts = DeviceFacts(f"{DOCTOR}:00:00:01", last_boot=1)
    assert facts.known and canonical_mac(facts.mac) == facts.mac
    locally_administered, group = 0b10, 0b01
    assert int(facts.mac[:2], 16) & (locally_administered | group) == locally_administered


def test_a_device_is_known_by_its_state_its_presence_or_its_boot() -> None:
    assert not DeviceFacts("a", board="bread").known
    assert all(one.known for one in (DeviceFacts("a", "bound"), DeviceFacts("a", presence_at=1)))
    assert DeviceFacts("a", presence_at=5, last_boot=7).last_seen == DeviceFacts("a", presence_at=7).last_seen == 7


def test_devices_with_the_same_pages_share_a_tool_list_and_others_have_their_own() -> None:
    assert DeviceFacts("a", pages="p", has_tools=True).tool_key == "p"
    assert DeviceFacts("a", has_tools=True).tool_key == "a"
    assert DeviceFacts("a", pages="p").tool_key == ""
