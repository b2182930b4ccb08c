"""What every dialect does: frames that were captured are understood, and no damaged frame raises."""

import json
from random import Random
from typing import Any, get_args

import pytest

from fleet.wire import dialect_registrar, dialect_xiaozhi
from fleet.wire.dialect import Dialect
from fleet.wire.dialects import DIALECTS, receive
from fleet.wire.json_text import LARGEST_FRAME
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import (
    AbortEvent,
    AiMessageCommand,
    AlertCommand,
    AnswerStartCommand,
    AnswerStopCommand,
    AudioFormat,
    BadRequestEvent,
    CallToolCommand,
    DeviceCommand,
    DeviceEvent,
    EmotionCommand,
    ErrorCommand,
    GoodbyeCommand,
    GoodbyeEvent,
    HelloCommand,
    HelloEvent,
    IgnoredEvent,
    InitializeCommand,
    InitializedCommand,
    ListenStartEvent,
    ListToolsCommand,
    MalformedEvent,
    NotificationEvent,
    NotifyCommand,
    RegisteredCommand,
    RegisterToolsEvent,
    ResponseEvent,
    SentenceStartCommand,
    TranscriptCommand,
)
from tests.support import morse_dialect
from tests.support.every import for_every

EXPRESSION = {
    "name": "set_virtual_human_expression",
    "description": "设置AI虚拟人的表情",
    "main_type": "remote",
    "sub_type": "control",
    "parameters": {
        "type": "object",
        "properties": {"expression": {"type": "string", "enum": ["smile", "idle"]}},
        "required": ["expression"],
    },
}
REGISTRATION = {
    "jsonrpc": "2.0",
    "method": "mcp/registerTools",
    "params": {"mac_addr": "AA-BB-CC-DD-EE-FF", "tools": [EXPRESSION]},
    "id": "client-reg-001",
}
SPEC = ToolSpec(
    name="set_virtual_human_expression",
    description="设置AI虚拟人的表情",
    input_schema=EXPRESSION["parameters"],
    control=True,
)
HELLO = {"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": True}, "audio_params": {}}
ABORT = {"type": "abort", "session_id": "s", "reason": "wake_word_detected"}

CAPTURED: dict[str, list[tuple[dict[str, Any], DeviceEvent]]] = {
    "xiaozhi": [
        (HELLO, HelloEvent(AudioFormat(16000, 60), mcp=True)),
        ({"session_id": "s", "type": "listen", "state": "start", "mode": "auto"}, ListenStartEvent("s", "auto")),
        (ABORT, AbortEvent("s", "wake_word_detected")),
        ({"type": "goodbye", "session_id": "s"}, GoodbyeEvent("s")),
        ({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 7, "result": {"x": 1}}}, ResponseEvent("7", {"x": 1})),
        ({"type": "iot"}, IgnoredEvent("iot")),
    ],
    "registrar": [
        (REGISTRATION, RegisterToolsEvent("client-reg-001", "aa:bb:cc:dd:ee:ff", (SPEC,))),
        (
            {"jsonrpc": "2.0", "id": "call-5", "result": {"status": "success", "message": "音量已成功设置为 80"}},
            ResponseEvent("5", {"status": "success", "message": "音量已成功设置为 80"}, plain=True),
        ),
        (
            {"jsonrpc": "2.0", "id": "call-5", "error": {"code": -32000, "message": "执行失败：音量级别超出范围"}},
            ResponseEvent("5", error="执行失败：音量级别超出范围", plain=True),
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}},
            NotificationEvent("notifications/x", {"a": 1}),
        ),
        (HELLO, HelloEvent(AudioFormat(16000, 60), mcp=True)),
        (ABORT, AbortEvent("s", "wake_word_detected")),
    ],
    "morse": [
        ({"m": "cq"}, HelloEvent(AudioFormat(16000, 60))),
        ({"m": "k", "s": "s"}, ListenStartEvent("s", "auto")),
        ({"m": "can", "id": "1", "what": ["键"]}, RegisterToolsEvent("1", None, (ToolSpec(name="键"),))),
        ({"m": "r", "id": 7, "said": {"x": 1}}, ResponseEvent("7", {"x": 1}, plain=True)),
        ({"m": "73"}, IgnoredEvent("73")),
    ],
}
ORDERS: list[DeviceCommand] = [
    HelloCommand("s", "h.example", 8884, "0" * 32, "1" * 32, AudioFormat(24000, 60)),
    TranscriptCommand("s", "好"),
    EmotionCommand("s", "happy"),
    AnswerStartCommand("s"),
    SentenceStartCommand("s", "好。"),
    AnswerStopCommand("s"),
    GoodbyeCommand("s"),
    AlertCommand("a", "b"),
    NotifyCommand("http://x/y.ogg", "a\nb"),
    InitializeCommand(1),
    InitializedCommand(),
    ListToolsCommand(2),
    CallToolCommand(3, "x", {"a": [1, None]}),
    RegisteredCommand("r", ("clock",)),
    ErrorCommand(None, -32700, "not JSON"),
    AiMessageCommand("final", "好。"),
]
JUNK = [
    b"",
    b"{",
    b"[]",
    b"[1]",
    b"null",
    b'"x"',
    b"NaN",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"type":' * 100_000,
    b'{"jsonrpc":"2.0","method":"mcp/registerTools","id":1,"params":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"jsonrpc":"2.0","id":1e999,"result":1}',
    b'{"id":' + b"9" * 5000 + b"}",
    b'{"jsonrpc":"2.0","method":"x","id":"\\ud83d"}',
    b"9" * (LARGEST_FRAME + 1),
]


@pytest.fixture(autouse=True)
def morse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect that is added; no other file knows it."""
    monkeypatch.setitem(DIALECTS, "morse", morse_dialect.DIALECT)


@pytest.fixture(params=[*sorted(DIALECTS), "morse"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


def test_captured_frames_are_understood(dialect: Dialect) -> None:
    for frame, event in CAPTURED[dialect.name]:
        raw = json.dumps(frame, ensure_ascii=False).encode()
        assert dialect.receive(raw) == event
        assert dialect.receive(json.dumps(frame, ensure_ascii=True, indent=1).encode()) == event


@for_every("frame", JUNK)
def test_garbage_is_an_event(dialect: Dialect, frame: bytes) -> None:
    assert isinstance(dialect.receive(frame), MalformedEvent | BadRequestEvent | ResponseEvent)


def test_no_damaged_frame_raises_and_what_is_said_of_it_can_be_sent(dialect: Dialect) -> None:
    random = Random(7)
    for frame, _ in CAPTURED[dialect.name]:
        whole = json.dumps(frame, ensure_ascii=False).encode()
        for _ in range(300):
            damaged = bytearray(whole)
            for _ in range(random.randrange(1, 4)):
                at = random.randrange(len(damaged))
                damaged[at : at + random.randrange(4)] = random.randbytes(random.randrange(4))
                damaged = damaged or bytearray(b"{")
            for event in (dialect.receive(bytes(damaged)), receive(bytes(damaged))[1]):
                assert isinstance(event, get_args(DeviceEvent))
                if isinstance(event, BadRequestEvent):
                    json.loads(dialect_registrar.DIALECT.send(ErrorCommand(event.id, event.code, event.reason)))


def test_every_member_may_be_missing_or_of_any_type(dialect: Dialect) -> None:
    for frame, _ in CAPTURED[dialect.name]:
        for changed in variants(frame):
            assert isinstance(dialect.receive(json.dumps(changed).encode()), get_args(DeviceEvent))


def test_every_order_is_one_frame_or_none(dialect: Dialect) -> None:
    assert {type(order) for order in ORDERS} == set(get_args(DeviceCommand))
    for order in ORDERS:
        frame = dialect.send(order)
        assert not frame or isinstance(json.loads(frame), dict)
        assert b"\n" not in frame


def test_a_frame_tells_its_dialect() -> None:
    for name, frames in CAPTURED.items():
        for frame, event in frames:
            wanted = dialect_xiaozhi.DIALECT.name if "type" in frame else name
            assert receive(json.dumps(frame).encode()) == (wanted, event)


def variants(value: Any) -> list[Any]:
    """Return a JSON value with each of its members left out, or replaced by something else."""
    if isinstance(value, list):
        return [[one] for inner in value for one in variants(inner)]
    if not isinstance(value, dict):
        return []
    found: list[Any] = []
    for name, inner in value.items():
        found.append({other: kept for other, kept in value.items() if other != name})
        found += [value | {name: strange} for strange in (None, True, 7, 1.5, "", "x", [], {}, [None], {"": None})]
        found += [value | {name: changed} for changed in variants(inner)]
    return found
