"""What follows from the difference between what a device should be and what it reports."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.desired_state import (
    CORRECTIONS_MS,
    MOST_CORRECTIONS,
    SETTERS,
    STATUS,
    CallResult,
    DesiredProperty,
    StateCall,
    conclude,
    equal,
    judge,
    keep_own,
    plan,
    read_status,
)
from fleet.wire.property_states import POLICIES

ALL_TOOLS = (STATUS, *(one.tool for one in SETTERS.values()), "self.lamp.turn_on")
LAMP = "tools.self.lamp.turn_on"
NOW = 1_800_000_000_000


@dataclass
class Device:
    """A device that does what it is told, unless its answers say otherwise."""

    values: dict[str, Any] = field(default_factory=lambda: {"volume": 70, "brightness": 80, "theme": "light"})
    answers: Mapping[str, CallResult] = field(default_factory=dict)
    calls: list[StateCall] = field(default_factory=list)

    def answer(self, call: StateCall) -> CallResult:
        self.calls.append(call)
        if call.tool in self.answers:
            return self.answers[call.tool]
        if call.tool == STATUS:
            return CallResult("ok", status(self.values))
        if call.property in SETTERS:
            self.values[call.property] = next(iter(call.arguments.values()))
        return CallResult("ok", "true")

    def set_calls(self) -> list[str]:
        return [call.property for call in self.calls if call.property]


def status(values: Mapping[str, Any]) -> str:
    screen = {name: values[name] for name in ("brightness", "theme") if name in values}
    return json.dumps({"audio_speaker": {"volume": values.get("volume", 0)}, "screen": screen})


def one_round(
    properties: Mapping[str, DesiredProperty], device: Device, now: int = NOW, tools: tuple[str, ...] = ALL_TOOLS
) -> dict[str, DesiredProperty]:
    planned = plan(properties, tools, now)
    after, _ = conclude(planned.properties, planned.calls, [device.answer(one) for one in planned.calls], now)
    return after


def test_a_value_is_set_read_back_and_confirmed_in_one_round() -> None:
    device = Device()
    after = one_round({"volume": DesiredProperty(40)}, device)
    assert [(call.tool, call.arguments) for call in device.calls] == [
        ("self.audio_speaker.set_volume", {"volume": 40}),
        (STATUS, {}),
    ]
    assert (after["volume"].state, after["volume"].applied) == ("confirmed", 1)


def test_a_user_turns_the_knob_and_each_policy_does_its_own_thing() -> None:
    states, calls = {}, {}
    for policy in POLICIES:
        device = Device({"volume": 40})
        properties: Mapping[str, DesiredProperty] = one_round({"volume": DesiredProperty(40, policy)}, device)
        assert properties["volume"].state == "confirmed"
        device.values["volume"], device.calls = 90, []
        properties = one_round(properties, device, NOW + 1)
        states[policy] = [properties["volume"].state]
        properties = one_round(properties, device, NOW + 2)
        states[policy].append(properties["volume"].state)
        calls[policy] = device.set_calls()
    assert states == {"once": ["changed"] * 2, "enforce": ["drift", "confirmed"], "watch": ["drift"] * 2}
    assert calls == {"once": [], "enforce": ["volume"], "watch": []}


def test_what_cannot_be_read_back_is_sent_and_never_confirmed_nor_called_again() -> None:
    device = Device()
    properties: Mapping[str, DesiredProperty] = {LAMP: DesiredProperty({"level": 3})}
    for number in range(3):
        properties = one_round(properties, device, NOW + number)
        assert properties[LAMP].state == "sent"
    assert [(call.tool, call.arguments) for call in device.calls] == [("self.lamp.turn_on", {"level": 3})]


def test_a_device_without_screen_is_unsupported_and_no_drift() -> None:
    tools = (STATUS, "self.audio_speaker.set_volume")
    wanted = {"theme": DesiredProperty("dark", "enforce"), "brightness": DesiredProperty(4, "watch")}
    device = Device({"volume": 5})
    after = one_round(wanted, device, tools=tools)
    assert {name: one.state for name, one in after.items()} == {"theme": "unsupported", "brightness": "unsupported"}
    assert device.set_calls() == []
    later = one_round(after, Device(), NOW + 1)
    assert (later["theme"].state, later["brightness"].state) == ("confirmed", "drift"), "it has a screen now"


def test_a_theme_that_the_device_does_not_know_is_refused_and_not_tried_again() -> None:
    device = Device(answers={"self.screen.set_theme": CallResult("ok", "false")})
    after = one_round(one_round({"theme": DesiredProperty("pink", "enforce")}, device), device, NOW + 1)
    assert (after["theme"].state, device.set_calls()) == ("refused", ["theme"])
    device = Device(answers={"self.screen.set_theme": CallResult("error", "no")})
    assert one_round({"theme": DesiredProperty("pink")}, device)["theme"].text == "no"


def test_an_unknown_outcome_is_tried_again_only_where_it_can_be_read_back() -> None:
    lost = CallResult("unknown", "no answer")
    device = Device(answers=dict.fromkeys(ALL_TOOLS, lost))
    properties: Mapping[str, DesiredProperty] = {"volume": DesiredProperty(4), LAMP: DesiredProperty({})}
    for number in range(6):
        properties = one_round(properties, device, NOW + number)
    assert sorted(device.set_calls()) == [LAMP, "volume", "volume", "volume"]
    assert (properties["volume"].state, properties[LAMP].state) == ("unknown", "unknown")
    assert one_round(properties, Device({"volume": 4}), NOW + 9)["volume"].state == "confirmed"


def test_what_was_not_sent_stays_to_be_done() -> None:
    device = Device(answers={call: CallResult("not_sent", "the device is not connected") for call in ALL_TOOLS})
    after = one_round({"volume": DesiredProperty(4), LAMP: DesiredProperty({})}, device)
    assert [(one.state, one.open) for one in after.values()] == [("pending", True)] * 2


def test_a_change_during_a_round_is_not_taken_for_done() -> None:
    planned = plan({"volume": DesiredProperty(40)}, ALL_TOOLS, NOW)
    newer = {"volume": DesiredProperty(50, version=2)}
    after, _ = conclude(newer, planned.calls, [CallResult("ok", "true"), CallResult("ok", status({"volume": 40}))], NOW)
    assert (after["volume"].state, after["volume"].open) == ("pending", True)


def test_a_device_that_bounds_a_value_has_it() -> None:
    assert equal(100, 120) and equal(0, -3.2) and equal(40, 40.2) and not equal(40, 41) and equal("dark", "dark")
    assert not equal("dark", "light") and not equal(40, "40")


def test_hostile_answers_report_nothing() -> None:
    for text in ("", "null", "[]", '{"audio_speaker":[]}', '{"audio_speaker":{"volume":true},"screen":{"theme":4}}'):
        assert read_status(text) == {}, text
    assert read_status("[" * 100_000) == {}
    for unfit in ('{"audio_speaker":{"volume":1e999}}', '{"screen":{"theme":"\\ud800"}}'):
        assert read_status(unfit) == {}, "no database keeps it"
    assert read_status('{"audio_speaker":{"volume":7},"screen":null}') == {"volume": 7}


def test_a_property_that_the_server_keeps_is_judged_like_others_and_never_called() -> None:
    wanted = {"language": DesiredProperty("de", "enforce")}
    assert plan(wanted, ALL_TOOLS, NOW).calls == []
    confirmed = judge(wanted["language"], "de", NOW)
    assert (confirmed.state, judge(confirmed, "fr", NOW + 1).state) == ("confirmed", "drift")


MOVES = st.lists(st.tuples(st.integers(0, CORRECTIONS_MS // 3), st.booleans()), max_size=60)


@given(MOVES)
@settings(max_examples=4 * settings().max_examples)
def test_enforce_never_corrects_more_often_than_it_may_within_an_hour(moves: list[tuple[int, bool]]) -> None:
    device, now = Device({"volume": 0}), NOW
    properties: Mapping[str, DesiredProperty] = one_round({"volume": DesiredProperty(40, "enforce")}, device)
    corrected: list[int] = []
    for pause, turned in moves:
        now += pause
        if turned:
            device.values["volume"] = 90
        before = len(device.set_calls())
        properties = one_round(properties, device, now)
        corrected += [now] * (len(device.set_calls()) - before)
    for at in corrected:
        assert sum(at - CORRECTIONS_MS < other <= at for other in corrected) <= MOST_CORRECTIONS
    if properties["volume"].given_up:
        assert properties["volume"].state == "drift"


@given(st.lists(st.sampled_from(["ok", "error", "not_sent", "unknown"]), max_size=30), st.sampled_from(POLICIES))
@settings(max_examples=4 * settings().max_examples)
def test_whatever_happens_a_version_is_dealt_with_once_and_watch_calls_nothing(outcomes: Any, policy: Any) -> None:
    device, done = Device(), 0
    properties: Mapping[str, DesiredProperty] = {
        "volume": DesiredProperty(40, policy),
        LAMP: DesiredProperty({}, policy),
    }
    for number, outcome in enumerate(outcomes):
        device.answers = {} if outcome == "ok" else {tool: CallResult(outcome, "x") for tool in ALL_TOOLS}
        properties = one_round(properties, device, NOW + number)
        done += outcome in ("ok", "error", "unknown")
    assert device.set_calls().count(LAMP) <= (0 if policy == "watch" else outcomes.count("not_sent") + 1)
    if policy == "watch":
        assert device.set_calls() == []
    elif "ok" in outcomes and policy == "once":
        assert not properties["volume"].open and not properties[LAMP].open


def test_the_server_writes_what_it_keeps_itself_once_and_again_only_to_enforce_it() -> None:
    wanted = {"timezone": DesiredProperty("Asia/Shanghai"), "language": DesiredProperty("zh", "enforce")}
    after, writes = keep_own(wanted, {}, NOW)
    assert writes == ["timezone", "language"]
    kept = {"timezone": "Asia/Shanghai", "language": "zh"}
    after, writes = keep_own(after, kept, NOW)
    assert (writes, [one.state for one in after.values()]) == ([], ["confirmed"] * 2)
    after, writes = keep_own(after, {"timezone": "Europe/Berlin"}, NOW + 1)
    assert (writes, [one.state for one in after.values()]) == (["language"], ["changed", "drift"])


def test_the_server_gives_up_what_somebody_changes_again_and_again() -> None:
    after, _ = keep_own({"language": DesiredProperty("zh", "enforce")}, {"language": "zh"}, NOW)
    for number in range(MOST_CORRECTIONS + 1):
        after, writes = keep_own(after, {"language": "en"}, NOW + 2 * number)
        assert writes == (["language"] if number < MOST_CORRECTIONS else [])
        if writes:
            after, _ = keep_own(after, {"language": "zh"}, NOW + 2 * number + 1)
    assert after["language"].given_up


def test_what_a_device_keeps_is_none_of_the_servers_business() -> None:
    wanted = {"volume": DesiredProperty(40), "language": DesiredProperty("zh", "watch")}
    assert keep_own(wanted, {"language": "en"}, NOW)[1] == []
    assert keep_own(wanted, {}, NOW)[0]["volume"] == wanted["volume"]
