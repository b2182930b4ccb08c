import json

import pytest

from fleet.workbench.sim.messages.legacy import crash_reason

UDP = {"server": "192.0.2.1", "port": 8884, "key": "00" * 16, "nonce": "01" + "00" * 15}
HELLO = {"type": "hello", "transport": "udp", "session_id": "s", "udp": UDP}


def told(message: object) -> str | None:
    return crash_reason(json.dumps(message).encode())


def without(name: str) -> dict[str, object]:
    return {**HELLO, "udp": {key: value for key, value in UDP.items() if key != name}}


@pytest.mark.parametrize("name", list(UDP))
def test_a_hello_without_a_member_crashes(name: str) -> None:
    assert told(without(name)) == f"hello without udp.{name}"


def test_a_member_of_the_wrong_type_crashes() -> None:
    assert told({**HELLO, "udp": {**UDP, "key": 7}}) == "hello without udp.key"
    assert told({**HELLO, "transport": 1}) == "hello without transport"
    assert told({"type": 4}) == "`type` is no string"
    assert told({"type": "tts", "state": 1}) == "tts without state"


@pytest.mark.parametrize(
    "message",
    [
        HELLO,
        {"type": "hello", "transport": "websocket"},
        {"type": "hello", "transport": "udp"},
        {"type": "tts", "state": "start"},
        {"type": "stt"},
        {"type": "llm"},
        {"type": "system"},
        {"no": "type"},
        [],
    ],
)
def test_what_is_looked_at_first_does_not_crash(message: object) -> None:
    assert told(message) is None


def test_what_is_no_json_does_not_crash() -> None:
    assert crash_reason(b"{") is None
    assert crash_reason(b"\xff") is None
    assert crash_reason(b"[" * 100_000) is None
