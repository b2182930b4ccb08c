import pytest

from fleet.core.tool_kinds import QUICK, ToolKind, kind_of


@pytest.mark.parametrize(
    ("name", "seconds", "slow", "leaves"),
    [
        ("self.camera.take_photo", 70, True, False),
        ("self.robot.take_photo", 70, True, False),
        ("self.camera.set_zoom", 70, True, False),
        ("self.screen.snapshot", 70, True, False),
        ("self.upgrade_firmware", 300, True, True),
        ("self.reboot", 0, False, True),
        ("self.system.reconfigure_wifi", 0, False, True),
    ],
)
def test_tools_that_are_not_answered_at_once_are_known(name: str, seconds: float, slow: bool, leaves: bool) -> None:
    kind = kind_of(name)
    assert (kind.seconds, kind.slow, kind.leaves) == (seconds, slow, leaves)


@pytest.mark.parametrize("name", ["self.get_device_status", "self.rebooting", "not.self.reboot", "", "take_photo\nx"])
def test_all_others_are_quick(name: str) -> None:
    assert kind_of(name) is QUICK
    assert ToolKind(0.0, slow=False, camera=False, leaves=False, fails_if_answered=False) == QUICK
