import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.dialect_xiaozhi import DIALECT, LARGEST_FRAME
from fleet.wire.messages import (
    AbortEvent,
    AlertCommand,
    AnswerStartCommand,
    AnswerStopCommand,
    AudioFormat,
    CallToolCommand,
    DetectEvent,
    DeviceCommand,
    DeviceEvent,
    EmotionCommand,
    GoodbyeCommand,
    GoodbyeEvent,
    HelloCommand,
    HelloEvent,
    IgnoredEvent,
    InitializeCommand,
    InitializedCommand,
    ListenStartEvent,
    ListenStopEvent,
    ListToolsCommand,
    MalformedEvent,
    NotificationEvent,
    ResponseEvent,
    SentenceStartCommand,
    TranscriptCommand,
)

HELLO = {
    "type": "hello",
    "version": 3,
    "transport": "udp",
    "features": {"mcp": True, "glyph_push": True},
    "text_font": {"bundle": "x", "charset": "basic", "size": 20, "bpp": 4},
    "audio_params": {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60},
}
FRAMES: list[tuple[dict[str, Any], DeviceEvent]] = [
    (HELLO, HelloEvent(AudioFormat(16000, 60), mcp=True, glyph_push=True)),
    ({"type": "hello", "version": 1}, HelloEvent(AudioFormat(16000, 60), version=1)),
    ({"session_id": "s", "type": "listen", "state": "start", "mode": "auto"}, ListenStartEvent("s", "auto")),
    ({"session_id": "s", "type": "listen", "state": "stop"}, ListenStopEvent("s")),
    ({"session_id": "s", "type": "listen", "state": "detect", "text": "你好小智"}, DetectEvent("s", "你好小智")),
    ({"session_id": "s", "type": "abort", "reason": "wake_word_detected"}, AbortEvent("s", "wake_word_detected")),
    ({"session_id": "s", "type": "abort"}, AbortEvent("s", "")),
    ({"session_id": "s", "type": "goodbye"}, GoodbyeEvent("s")),
    ({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 7, "result": {"x": 1}}}, ResponseEvent("7", {"x": 1})),
    (
        {"type": "mcp", "payload": {"id": "7", "error": {"message": "Unknown tool: x"}}},
        ResponseEvent("7", error="Unknown tool: x"),
    ),
    (
        {"type": "mcp", "payload": {"method": "notifications/x", "params": {"a": 1}}},
        NotificationEvent("notifications/x", {"a": 1}),
    ),
    ({"type": "iot", "states": []}, IgnoredEvent("iot")),
    ({"type": "hello", "features": None, "audio_params": [], "version": "x"}, HelloEvent(AudioFormat(16000, 60))),
    ({"type": "hello", "features": {"mcp": None, "aec": 1}}, HelloEvent(AudioFormat(16000, 60))),
    ({"type": "abort", "session_id": 5, "reason": {}}, AbortEvent("", "")),
    ({"type": "listen", "state": "detect", "text": None}, DetectEvent("", "")),
]


@pytest.mark.parametrize(("frame", "event"), FRAMES)
def test_device_frames_are_understood(frame: dict[str, Any], event: DeviceEvent) -> None:
    assert DIALECT.receive(json.dumps(frame, ensure_ascii=False).encode()) == event


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"type":5}',
        b'{"state":"start"}',
        b'{"type":"listen","state":"sing"}',
        b'{"type":"listen","state":"detect","text":"say "hi""}',
        b'{"type":"hello","audio_params":{"sample_rate":"many"}}',
        b'{"type":"hello","audio_params":{"sample_rate":44100}}',
        b'{"type":"mcp","payload":[1]}',
        b'{"type":"mcp","payload":{"result":1}}',
        b'{"type":"mcp","payload":{"id":1,"result":NaN}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"9" * (LARGEST_FRAME + 1),
    ],
)
def test_bad_frames_are_values(frame: bytes) -> None:
    assert isinstance(DIALECT.receive(frame), MalformedEvent)


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b'{"type":"listen","state":"detect","text":"\xc4\xe3\xba\xc3"}', "\ufffd" * 3),
        (b'{"type":"listen","state":"detect","text":"\xed\xa0\x80"}', "\ufffd" * 3),
        (b'{"type":"listen","state":"detect","text":"\\ud83d\\ude00 \\uD83D"}', "😀 ?"),
        (b'{"type":"listen","state":"detect","text":"\\\\ud800"}', "\\ud800"),
    ],
)
def test_what_utf8_cannot_carry_is_replaced(frame: bytes, text: str) -> None:
    assert DIALECT.receive(frame) == DetectEvent("", text)


@given(st.text(st.characters(), max_size=20))
def test_no_order_raises(text: str) -> None:
    json.loads(DIALECT.send(TranscriptCommand("s", text)))
    json.loads(DIALECT.send(CallToolCommand(1, text, {text: [text]})))


@given(st.sampled_from(FRAMES), st.data())
def test_no_damaged_frame_raises(example: tuple[dict[str, Any], DeviceEvent], data: st.DataObject) -> None:
    frame = dict(example[0])
    name = data.draw(st.sampled_from(sorted(frame)))
    frame[name] = data.draw(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(st.integers())
        | st.just({"a": {}})
    )
    DIALECT.receive(json.dumps(frame).encode())


@given(st.binary(max_size=300))
def test_no_bytes_raise(frame: bytes) -> None:
    DIALECT.receive(frame)


ORDERS: list[tuple[DeviceCommand, dict[str, Any]]] = [
    (TranscriptCommand("s", "hi"), {"type": "stt", "session_id": "s", "text": "hi"}),
    (EmotionCommand("s", "happy"), {"type": "llm", "session_id": "s", "emotion": "happy", "text": ""}),
    (AnswerStartCommand("s"), {"type": "tts", "session_id": "s", "state": "start"}),
    (SentenceStartCommand("s", "好"), {"type": "tts", "session_id": "s", "state": "sentence_start", "text": "好"}),
    (AnswerStopCommand("s"), {"type": "tts", "session_id": "s", "state": "stop"}),
    (GoodbyeCommand("s"), {"type": "goodbye", "session_id": "s"}),
    (AlertCommand("Error", "x", "sad"), {"type": "alert", "status": "Error", "message": "x", "emotion": "sad"}),
]


@pytest.mark.parametrize(("order", "frame"), ORDERS)
def test_orders_become_the_frames_that_firmware_knows(order: DeviceCommand, frame: dict[str, Any]) -> None:
    assert json.loads(DIALECT.send(order)) == frame


def test_the_welcome_holds_every_member_that_old_firmware_crashes_without() -> None:
    frame = json.loads(DIALECT.send(HelloCommand("s", "h.example", 8884, "0" * 32, "1" * 32, AudioFormat(24000, 60))))
    assert frame == {
        "type": "hello",
        "version": 3,
        "transport": "udp",
        "session_id": "s",
        "udp": {
            "server": "h.example",
            "port": 8884,
            "encryption": "aes-128-ctr",
            "key": "0" * 32,
            "nonce": "1" * 32,
        },
        "audio_params": {"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60},
    }


@pytest.mark.parametrize(
    "order",
    [
        InitializeCommand(1),
        InitializeCommand(1, vision_url="http://h/v", vision_token="t"),
        InitializedCommand(),
        ListToolsCommand(2, "c"),
        CallToolCommand(3, "t"),
    ],
)
def test_mcp_requests_have_number_ids_and_never_null_params(order: DeviceCommand) -> None:
    payload = json.loads(DIALECT.send(order))["payload"]
    assert payload["jsonrpc"] == "2.0"
    assert isinstance(payload.get("id", 0), int)
    assert payload.get("params", {}) is not None
    assert payload.get("params", {}).get("arguments", {}) is not None
