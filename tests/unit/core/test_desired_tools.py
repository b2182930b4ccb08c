"""Which calls of boards' tools may be desired."""

from fleet.core.desired_tools import fault_of_tool


def test_tools_that_set_something_lasting_may_be_desired() -> None:
    for name in ("self.lamp.turn_on", "self.set_press_to_talk", "self.light.set_rgb", "self.board.unknown"):
        assert fault_of_tool(name) == "", name
    assert "name that in place of the tool" in fault_of_tool("self.screen.set_theme")
    for name in ("self.get_device_status", "self.reboot", "self.upgrade_firmware", "self.camera.take_photo"):
        assert "nothing that could be desired" in fault_of_tool(name), name
