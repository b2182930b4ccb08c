from typing import Any

import pytest

from fleet.workbench.sim.bootstrap.ota import read_mqtt
from fleet.workbench.sim.bootstrap.ota_rules import check_answer, check_response

MQTT: dict[str, Any] = {
    "endpoint": "host.example:1883",
    "client_id": "c",
    "username": "u",
    "password": "p",
    "publish_topic": "up/1",
    "subscribe_topic": "null",
    "keepalive": 30,
}


def _rules(answer: dict[str, Any]) -> list[str]:
    return [rule for rule, _ in check_answer(answer, "2.4.2")]


def test_a_good_answer_breaks_no_rule() -> None:
    answer = {
        "mqtt": MQTT,
        "server_time": {"timestamp": 1, "timezone_offset": 0},
        "firmware": {"version": "2.4.2", "url": ""},
    }
    assert _rules(answer) == []
    assert not list(check_response(200, {"content-length": "9"}, b"{}"))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"keepalive": "30"}, "ota-mqtt"),
        ({"publish_topic": ""}, "ota-mqtt"),
        ({"username": None}, "ota-mqtt"),
        ({"endpoint": "mqtt://host:1883"}, "ota-endpoint"),
        ({"endpoint": "[::1]:1883"}, "ota-endpoint"),
        ({"subscribe_topics": "x"}, "ota-keys"),
        ({"extra": "x" * 4000}, "ota-keys"),
    ],
)
def test_what_locks_a_device_out_or_crashes_it_breaks_a_rule(changes: dict[str, Any], rule: str) -> None:
    assert rule in _rules({"mqtt": {**MQTT, **changes}})


@pytest.mark.parametrize(
    "firmware",
    [
        {"version": "v2.5", "url": "http://x"},
        {"version": "20260808120000", "url": ""},
        {"version": "2.4.2", "url": "http://x", "force": 1},
        {"version": "2.5.0", "url": ""},
    ],
)
def test_firmware_that_crashes_or_loops_breaks_a_rule(firmware: dict[str, Any]) -> None:
    assert _rules({"mqtt": MQTT, "firmware": firmware}) == ["ota-firmware"]


def test_missing_sections_and_bad_time_break_their_rules() -> None:
    assert _rules({}) == ["ota-mqtt"]
    assert _rules({"mqtt": MQTT, "server_time": {"timestamp": "1"}}) == ["ota-time"]


@pytest.mark.parametrize(
    ("status", "headers", "size", "rule"),
    [
        (301, {"content-length": "0"}, 0, "ota-status"),
        (200, {"content-length": "7001"}, 7001, "ota-size"),
        (200, {"connection": "keep-alive"}, 5, "ota-framing"),
    ],
)
def test_responses_that_firmware_cannot_read_break_a_rule(
    status: int, headers: dict[str, str], size: int, rule: str
) -> None:
    assert [name for name, _ in check_response(status, headers, b"x" * size)] == [rule]


def test_stored_credentials_take_what_is_there_and_a_text_as_keepalive_is_not_believed() -> None:
    access = read_mqtt({**MQTT, "keepalive": "30", "username": 7})
    assert access is not None
    assert (access.keepalive, access.username, access.password) == (240, "", "p")
    assert read_mqtt({**MQTT, "endpoint": "[::1]:1883"}) is None
