from typing import Any

import pytest

from fleet.workbench.sim.messages.server_hello import check, read

GOOD: dict[str, Any] = {
    "type": "hello",
    "transport": "udp",
    "session_id": "s_1-A",
    "udp": {"server": "203.0.113.9", "port": 8884, "key": "0F" * 16, "nonce": "0100000011223344" + "0" * 16},
    "audio_params": {"format": "opus", "sample_rate": 16_000, "channels": 1, "frame_duration": 20},
}


def _with(**changes: Any) -> dict[str, Any]:
    message = {**GOOD, "udp": dict(GOOD["udp"]), "audio_params": dict(GOOD["audio_params"])}
    for path, value in changes.items():
        section, _, name = path.partition("__")
        if name:
            message[section][name] = value
        else:
            message[section] = value
    return message


def test_a_good_hello_is_read_whole() -> None:
    assert list(check(GOOD)) == []
    hello = read(GOOD)
    assert hello is not None
    assert (hello.session, hello.server, hello.port) == ("s_1-A", "203.0.113.9", 8884)
    assert (hello.key, hello.sample_rate, hello.frame_ms) == (b"\x0f" * 16, 16_000, 20)


@pytest.mark.parametrize(
    "changes",
    [
        {"transport": "websocket"},
        {"udp": None},
        {"udp__server": ""},
        {"udp__port": "8884"},
        {"udp__port": 0},
        {"udp__key": "0f" * 15},
        {"udp__nonce": "zz" * 16},
    ],
)
def test_a_hello_that_firmware_cannot_use_is_ignored_and_breaks_a_rule(changes: dict[str, Any]) -> None:
    message = _with(**changes)
    assert read(message) is None
    assert {rule for rule, _ in check(message)} == {"hello-field"}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"session_id": "a b"}, "hello-field"),
        ({"session_id": "x" * 65}, "hello-field"),
        ({"udp__server": "http://203.0.113.9"}, "hello-field"),
        ({"udp__nonce": "00" * 16}, "hello-nonce"),
        ({"udp__nonce": "01" + "0" * 29 + "1"}, "hello-nonce"),
        ({"audio_params__sample_rate": 44_100}, "hello-field"),
        ({"audio_params__frame_duration": 50}, "hello-field"),
    ],
)
def test_a_hello_that_works_by_luck_breaks_a_rule(changes: dict[str, Any], rule: str) -> None:
    message = _with(**changes)
    assert read(message) is not None
    assert [name for name, _ in check(message)] == [rule]


def test_formats_that_are_not_given_are_firmwares_defaults() -> None:
    hello = read(_with(audio_params={}))
    assert hello is not None
    assert (hello.sample_rate, hello.frame_ms) == (24_000, 60)
