import pytest
from pydantic import TypeAdapter

from fleet.core.tool_policy import Decision, Risk, ToolPolicy, ToolRule, ToolSource, read_policy, risk_of
from tests.support.every import for_every

_RISKS: list[tuple[str, ToolSource, Risk]] = [
    ("self.get_device_status", "device", "read"),
    ("self.lamp.get_state", "device", "read"),
    ("self.lamp.turn_on", "device", "act"),
    ("self.audio_speaker.set_volume", "device", "act"),
    ("self.reboot", "device", "dangerous"),
    ("self.upgrade_firmware", "device", "dangerous"),
    ("self.assets.set_download_url", "device", "dangerous"),
    ("self.screen.snapshot", "device", "dangerous"),
    ("self.camera.take_photo", "device", "dangerous"),
    ("self.oven.heat", "device", "dangerous"),
    ("SELF.GET_DEVICE_STATUS", "device", "dangerous"),
    ("get_weather", "server", "read"),
    ("set_language", "server", "act"),
    ("get_state", "program", "read"),
    ("open_door", "program", "act"),
]


@for_every("tool, source, risk", _RISKS)
def test_the_risk_of_a_tool_follows_from_its_name_and_an_unknown_one_of_a_board_is_dangerous(
    tool: str, source: ToolSource, risk: Risk
) -> None:
    assert risk_of(tool, source) == risk


_RULES = ToolPolicy(
    (
        ToolRule("allow", "self.oven.get_*"),
        ToolRule("deny", "self.oven.*"),
        ToolRule("ask", risk="dangerous"),
        ToolRule("deny", "self.lamp.*", "act"),
    )
)
_DECISIONS: list[tuple[str, Decision]] = [
    ("self.oven.get_heat", "allow"),
    ("self.oven.heat", "deny"),
    ("self.reboot", "ask"),
    ("self.lamp.turn_on", "deny"),
    ("self.lamp.get_state", "allow"),
    ("self.audio_speaker.set_volume", "allow"),
]


@for_every("tool, decision", _DECISIONS)
def test_the_first_rule_that_fits_decides(tool: str, decision: Decision) -> None:
    assert _RULES.decide(tool, "device") == decision


def test_without_rules_every_tool_is_allowed_and_the_last_word_can_be_set() -> None:
    assert ToolPolicy().decide("self.reboot", "device") == "allow"
    assert ToolPolicy(otherwise="deny").decide("self.lamp.turn_on", "device") == "deny"


def test_dangerous_tools_can_be_left_out_of_any_policy() -> None:
    for policy in (ToolPolicy(), read_policy("allow self.camera.*, deny self.lamp.*")):
        safe = policy.without_dangerous()
        assert safe.decide("self.camera.take_photo", "device") == "deny"
        assert safe.decide("self.lamp.turn_on", "device") == policy.decide("self.lamp.turn_on", "device")


def test_a_policy_is_read_from_a_setting() -> None:
    rules = (ToolRule("deny", "self.camera.*"), ToolRule("ask", risk="dangerous"))
    assert read_policy("deny self.camera.*, ask  dangerous ") == ToolPolicy(rules)
    assert read_policy("") == ToolPolicy()
    for wrong in ("deny", "maybe self.x", "ask self.x now"):
        with pytest.raises(ValueError):
            read_policy(wrong)


def test_a_policy_is_stored_as_json() -> None:
    stored: TypeAdapter[ToolPolicy] = TypeAdapter(ToolPolicy)
    assert stored.validate_json(stored.dump_json(_RULES)) == _RULES


def test_a_pattern_of_the_names_of_reminder_tools_fits_all_three() -> None:
    names = ("set_reminder", "list_reminders", "cancel_reminder")

    def decide(text: str, source: ToolSource = "server") -> list[Decision]:
        return [read_policy(text).decide(name, source) for name in names]

    assert decide("deny *_reminder") == ["deny"] * 3 == decide("deny *_reminders, deny *_reminder")
    assert decide("allow list_reminders, deny *_reminder") == ["deny", "allow", "deny"]
    assert decide("deny list_reminders") == ["allow", "deny", "allow"] == decide("deny *_reminders")
    assert decide("deny *_reminder", "program") == ["deny", "allow", "deny"], "the names of others are their own"
