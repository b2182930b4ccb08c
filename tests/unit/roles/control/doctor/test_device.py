"""Why a device is silent, from what is known of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.adapters.redis.access.admissions import Admission
from fleet.adapters.redis.devices.view import DeviceView, Trace
from fleet.core.finding import Finding
from fleet.roles.control.doctor.device import SiteTerms, describe_time, judge_device

NOW = 1_800_000_000
MAC = "aa:bb:cc:dd:ee:ff"
UNKNOWN = DeviceView(MAC, {}, {}, None, None, Admission(), False, {}, {}, 0, False)
CONNECTED = replace(
    UNKNOWN,
    record={"on": "1", "ep": "5", "tep": "5", "kid": "k1", "board": "b", "fw": "1", "host": "192.0.2.1", "gone": "s1"},
    traces={"presence": Trace(NOW - 600)},
    bootstrap=NOW - 700,
    tools=3,
)


def with_traces(**traces: tuple[int, str]) -> DeviceView:
    """Return a connected device with these traces, each so many seconds ago."""
    more = {what: Trace(NOW - ago, words) for what, (ago, words) in traces.items()}
    return replace(CONNECTED, traces={**CONNECTED.traces, **more})


TALKED = with_traces(hello=(300, ""), goodbye=(200, "idle"), audio=(299, "s1 192.0.2.7:5"), end=(200, "s1 812 90"))


def judge(known: DeviceView, **settings: Any) -> dict[str, Finding]:
    found = judge_device(known, SiteTerms(**{"policy": "first", **settings}), datetime.fromtimestamp(NOW, UTC))
    return {finding.check: finding for finding in found}


def first_fault(known: DeviceView, **settings: Any) -> Finding:
    return next(one for one in judge(known, **settings).values() if one.verdict in ("problem", "warning"))


def heard(**traces: tuple[int, str]) -> DeviceView:
    return replace(TALKED, traces={**TALKED.traces, **with_traces(**traces).traces})


@pytest.mark.parametrize(
    ("known", "check", "advice"),
    [
        (UNKNOWN, "device.bootstrap", "fleet doctor --ota URL"),
        (replace(CONNECTED, revoked=True), "device.revoked", f"unrevoke {MAC}"),
        (replace(UNKNOWN, refusal=Trace(NOW - 5, "not bound")), "device.bootstrap", "fleet devices bind"),
        (replace(UNKNOWN, refusal=Trace(NOW - 5, "no place")), "device.bootstrap", f"bind {MAC}"),
        (replace(CONNECTED, refusal=Trace(NOW - 5, "revoked")), "device.bootstrap", f"unrevoke {MAC}"),
        (replace(UNKNOWN, bootstrap=NOW - 60, record={"board": "b"}), "device.presence", "FLEET_MQTT_PUBLIC"),
        (replace(CONNECTED, record={**CONNECTED.record, "on": "0"}), "device.presence", "switched off"),
        (replace(CONNECTED, tools=0), "device.tools", "does nothing"),
        (CONNECTED, "device.hello", "wake word"),
        (with_traces(hello=(50, ""), refused=(9, "no edge is ready")), "device.hello", "fleet edge"),
        (with_traces(refused=(9, "no address for the audio is known")), "device.hello", "FLEET_UDP_PUBLIC"),
        (with_traces(hello=(60, ""), goodbye=(45, "unused")), "device.audio", "firewall"),
        (
            heard(hello=(30, ""), audio=(500, "s0 192.0.2.7:5"), goodbye=(2, "unused")),
            "device.audio",
            "FLEET_UDP_PUBLIC",
        ),
        (with_traces(hello=(60, ""), goodbye=(45, "device")), "device.audio", "firewall"),
        (TALKED, "device.speech", "microphone"),
        (heard(heard=(280, "")), "device.speech", "--only speech"),
        (heard(heard=(280, ""), understood=(279, ""), sorry=(270, "failed")), "device.answer", "turn failed"),
        (heard(heard=(280, ""), understood=(279, "")), "device.answer", "fleet devices debug"),
    ],
)
def test_the_first_station_that_failed_is_named_with_what_to_do(known: DeviceView, check: str, advice: str) -> None:
    found = first_fault(known)
    assert found.check == check
    assert advice in found.advice


def test_a_device_that_was_answered_has_no_fault() -> None:
    found = judge(heard(heard=(280, ""), understood=(279, ""), spoke=(270, "")))
    assert {one.verdict for one in found.values()} <= {"ok", "skipped"}
    assert "192.0.2.7:5" in found["device.audio"].message and "812" in found["device.audio"].message
    assert "3 tools" in found["device.tools"].message


def test_a_device_that_hung_up_in_order_has_no_fault() -> None:
    gone = heard(heard=(280, ""), understood=(279, ""), spoke=(270, ""), goodbye=(200, "device"), presence=(199, ""))
    gone = replace(gone, record={**gone.record, "on": "0"})
    assert {one.verdict for one in judge(gone).values()} <= {"ok", "skipped"}
    lost = replace(gone, traces={**gone.traces, "presence": Trace(NOW - 100)})
    assert judge(lost)["device.presence"].verdict == "problem", "it was lost long after it hung up"
    early = with_traces(hello=(60, ""), goodbye=(50, "device"))
    assert judge(early)["device.audio"].verdict == "warning"
    late = with_traces(hello=(60, ""), goodbye=(45, "device"))
    assert judge(late)["device.audio"].verdict == "problem", "the edge would have ended the session"


def test_a_hello_of_a_moment_ago_need_not_have_audio_yet() -> None:
    young = replace(with_traces(hello=(2, "")), session={"id": "s1", "edge": "e1"}, edge_lives=True)
    assert judge(young)["device.audio"].verdict == "skipped"
    assert judge(young)["device.edge"].verdict == "ok"
    assert judge(replace(young, edge_lives=False))["device.edge"].verdict == "problem"


def test_a_password_under_a_retired_key_is_a_fault() -> None:
    assert judge(CONNECTED, keys=["k2"])["device.key"].verdict == "problem"
    assert "device.key" not in judge(CONNECTED, keys=["k1"])


def test_who_is_not_bound_is_no_fault_where_everybody_may_come() -> None:
    assert "device.bound" not in judge(CONNECTED)
    newcomer = replace(CONNECTED, record={})
    assert "fleet devices bind" in judge(newcomer, policy="code")["device.bound"].advice
    assert "device.bound" not in judge(newcomer, policy="first")
    assert "device.bound" not in judge(CONNECTED, policy="code"), "it was connected before: it is kept"
    unbound = replace(CONNECTED, admission=Admission(unbound=True))
    assert "fleet devices bind" in judge(unbound, policy="first")["device.bound"].advice
    assert "device.bound" not in judge(replace(CONNECTED, admission=Admission(bound=True)), policy="code")


@pytest.mark.parametrize(("ago", "told"), [(3, "3 s ago"), (180, "3 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")])
def test_times_are_told_for_people(ago: int, told: str) -> None:
    assert told in describe_time(NOW - ago, datetime.fromtimestamp(NOW, UTC))


def test_the_last_turn_is_shown_with_its_tokens() -> None:
    spoke = heard(heard=(210, ""), understood=(209, ""), spoke=(205, ""))
    assert "token" not in judge(spoke)["device.answer"].message
    counted = judge(replace(spoke, turn={"state": "written", "tokens": "1900 1700 14"}))["device.answer"]
    assert counted.message.endswith("; tokens: 1900 in (1700 of them cached), 14 out")
