"""What jobs do with a device."""

from fleet.core.job_kinds import call_of


def test_each_kind_is_a_call_with_its_risk() -> None:
    volume = call_of("tool", "self.audio_speaker.set_volume", {"volume": 4}, "status")
    assert (volume.arguments, volume.dangerous, volume.repeatable) == ({"volume": 4}, False, True)
    reboot = call_of("reboot", "", {}, "status")
    assert (reboot.tool, reboot.dangerous, reboot.repeatable) == ("self.reboot", True, False)
    status, system = call_of("collect", "", {}, "status"), call_of("collect", "", {}, "system")
    assert (status.tool, status.attribute, status.repeatable) == ("self.get_device_status", "status", True)
    assert (system.tool, system.attribute, system.dangerous) == ("self.get_system_info", "system", False)
    oven = call_of("tool", "self.oven.heat", {}, "status")
    assert oven.dangerous and not oven.repeatable, "nobody knows what it does"
