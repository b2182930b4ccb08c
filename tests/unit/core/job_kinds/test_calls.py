"""The kinds of jobs that are a call."""

from fleet.core.job_kinds.calls import call_terms, collect_terms
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS


def test_each_kind_is_a_call_with_its_risk() -> None:
    harmless, dangerous = (DEVICES_COMMAND,), (DEVICES_COMMAND, DEVICES_DANGEROUS)
    volume = call_terms("self.audio_speaker.set_volume", {"volume": 4})
    assert (volume.arguments, volume.scopes, volume.repeatable) == ({"volume": 4}, harmless, True)
    reboot = call_terms("self.reboot")
    assert (reboot.tool, reboot.scopes, reboot.repeatable) == ("self.reboot", dangerous, False)
    status, system = collect_terms("status"), collect_terms("system")
    assert (status.tool, status.attribute, status.repeatable) == ("self.get_device_status", "status", True)
    assert (system.tool, system.attribute, system.scopes) == ("self.get_system_info", "system", harmless)
    oven = call_terms("self.oven.heat")
    assert oven.scopes == dangerous and not oven.repeatable, "nobody knows what it does"
