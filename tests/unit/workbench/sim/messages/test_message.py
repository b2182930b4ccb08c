import json
from typing import Any

import pytest

from fleet.workbench.sim.messages.message import check, item, number, parse


def _rules(message: dict[str, Any], session: str = "s1") -> list[str]:
    payload = json.dumps(message).encode()
    parsed = parse(payload)
    assert parsed is not None
    return [rule for rule, _ in check(parsed, len(payload), session)]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "tts", "session_id": "s1", "state": "start"},
        {"type": "tts", "session_id": "s1", "state": "sentence_start", "text": "Hi."},
        {"type": "stt", "session_id": "s1", "text": ""},
        {"type": "llm", "session_id": "s1", "emotion": "happy", "text": "x"},
        {"type": "goodbye", "session_id": "another"},
        {"type": "alert", "status": "a", "message": "b", "emotion": "link"},
        {"type": "system", "command": "reboot"},
        {"type": "mcp", "payload": {"jsonrpc": "2.0"}},
        {"type": "ping"},
    ],
)
def test_good_messages_break_no_rule(message: dict[str, Any]) -> None:
    assert _rules(message) == []


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        ({"type": "tts"}, ["field-missing"]),
        ({"type": "tts", "state": 1}, ["field-missing"]),
        ({"type": "tts", "state": "sentence_start"}, ["field-missing"]),
        ({"type": "tts", "state": "begin"}, ["tts-state"]),
        ({"type": "tts", "session_id": "old", "state": "stop"}, ["session-foreign"]),
        ({"type": "stt", "text": None}, ["field-missing"]),
        ({"type": "llm", "emotion": "grumpy"}, ["emotion-unknown"]),
        ({"type": "alert", "status": "a"}, ["field-missing", "field-missing"]),
        ({"type": "goodbye"}, ["field-missing"]),
        ({"type": "mcp", "payload": "text"}, ["field-missing"]),
        ({"type": "stt", "text": "x" * 9000}, ["json-size"]),
        ({"type": "x", "deep": [[[[[[[[[[1]]]]]]]]]]}, ["json-depth"]),
    ],
)
def test_bad_messages_break_their_rules(message: dict[str, Any], rules: list[str]) -> None:
    assert _rules(message) == rules


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'"tts"', b"{}", b'{"type":1}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_message_is_none(payload: bytes) -> None:
    assert parse(payload) is None


def test_keys_match_whatever_their_capitals_and_the_first_wins() -> None:
    parsed = parse(b'{"TYPE":"tts","State":"start","state":"stop"}')
    assert parsed is not None
    assert item(parsed, "state") == "start"
    assert item(parsed, "type") == "tts"


def test_a_number_of_any_length_is_read() -> None:
    values = [10**400, 1.5, float("inf"), True, "1"]
    assert [number(value) for value in values] == [10**400, 1.5, None, None, None]
