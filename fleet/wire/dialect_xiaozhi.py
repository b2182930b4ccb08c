"""The dialect of stock xiaozhi firmware and of py-xiaozhi: JSON with a string `type`, MCP inside `mcp`.

Every field of a command is always sent with its right type: firmware up to 2.3.0 crashes on a missing field.
"""

from typing import Annotated, Any, Literal, assert_never

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from fleet.wire import jsonrpc, notify
from fleet.wire.dialect import Capabilities
from fleet.wire.json_text import LARGEST_FRAME, dump, parse
from fleet.wire.messages import (
    AbortEvent,
    AiMessageCommand,
    AlertCommand,
    AnswerStartCommand,
    AnswerStopCommand,
    AudioFormat,
    CallToolCommand,
    DetectEvent,
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
    ListenMode,
    ListenStartEvent,
    ListenStopEvent,
    ListToolsCommand,
    MalformedEvent,
    NotifyCommand,
    RegisteredCommand,
    SentenceStartCommand,
    TranscriptCommand,
    UsualCommand,
)
from fleet.wire.toc import FRAME_MS, SAMPLE_RATES


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


def _text(value: object) -> object:
    return value if isinstance(value, str) else ""


def _members(value: object) -> object:
    return value if isinstance(value, dict) else {}


def _known_version(value: object) -> object:
    return value if isinstance(value, int) else 3


_Text = Annotated[str, BeforeValidator(_text)]
_Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]


class _Features(_Part):
    mcp: _Flag = False
    aec: _Flag = False
    glyph_push: _Flag = False


class _AudioParams(_Part):
    sample_rate: int = 16000
    frame_duration: int = 60


class _Hello(_Part):
    type: Literal["hello"]
    version: Annotated[int, BeforeValidator(_known_version)] = 3
    features: Annotated[_Features, BeforeValidator(_members)] = _Features()
    audio_params: Annotated[_AudioParams, BeforeValidator(_members)] = _AudioParams()


class _Listen(_Part):
    type: Literal["listen"]
    session_id: _Text = ""
    state: Literal["start", "stop", "detect"]
    mode: ListenMode = "auto"
    text: _Text = ""


class _Abort(_Part):
    type: Literal["abort"]
    session_id: _Text = ""
    reason: _Text = ""


class _Goodbye(_Part):
    type: Literal["goodbye"]
    session_id: _Text = ""


class _Mcp(_Part):
    type: Literal["mcp"]
    payload: Any
    """Parsed JSON without validation: validating each part takes ten times as long as parsing."""


_Frame = Annotated[_Hello | _Listen | _Abort | _Goodbye | _Mcp, Field(discriminator="type")]
_FRAME: TypeAdapter[_Frame] = TypeAdapter(_Frame)
_KNOWN = frozenset({"hello", "listen", "abort", "goodbye", "mcp"})


class XiaozhiDialect:
    """Stock firmware 1.8 and later, and py-xiaozhi."""

    name = "xiaozhi"
    capabilities = Capabilities(
        audio=True, lists_tools=True, firmware_tools=True, camera=True, notifications=True, text="alert"
    )
    mark = b""

    def claims(self, document: object) -> bool:
        return False  # it gets every frame that no other dialect claims

    def receive(self, frame: bytes) -> DeviceEvent:
        if len(frame) > LARGEST_FRAME:
            return MalformedEvent("too large")
        try:
            document = parse(frame)
        except (ValueError, RecursionError):
            return MalformedEvent("not JSON")
        return self.read(document)

    def read(self, document: object) -> DeviceEvent:
        kind = document.get("type") if isinstance(document, dict) else None
        if not isinstance(kind, str):
            return MalformedEvent("no type")
        if kind not in _KNOWN:
            return IgnoredEvent(kind[:32])
        try:
            return _event(_FRAME.validate_python(document))
        except (ValidationError, RecursionError):
            return MalformedEvent(f"bad {kind}")

    def send(self, command: DeviceCommand) -> bytes:
        if isinstance(command, RegisteredCommand | ErrorCommand | AiMessageCommand):
            return b""
        return dump(_frame(command))


def _event(frame: _Hello | _Listen | _Abort | _Goodbye | _Mcp) -> DeviceEvent:
    match frame:
        case _Hello():
            return _hello(frame)
        case _Listen(state="start"):
            return ListenStartEvent(frame.session_id, frame.mode)
        case _Listen(state="stop"):
            return ListenStopEvent(frame.session_id)
        case _Listen():
            return DetectEvent(frame.session_id, frame.text)
        case _Abort():
            return AbortEvent(frame.session_id, frame.reason)
        case _Goodbye():
            return GoodbyeEvent(frame.session_id)
        case _Mcp():
            return jsonrpc.receive(frame.payload)
        case _:
            assert_never(frame)


def _hello(frame: _Hello) -> DeviceEvent:
    audio, features = frame.audio_params, frame.features
    if audio.sample_rate not in SAMPLE_RATES or audio.frame_duration not in FRAME_MS:
        return MalformedEvent("audio format that Opus does not have")
    return HelloEvent(
        AudioFormat(audio.sample_rate, audio.frame_duration),
        mcp=features.mcp,
        aec=features.aec,
        glyph_push=features.glyph_push,
        version=frame.version,
    )


def _frame(command: UsualCommand) -> dict[str, Any]:
    match command:
        case HelloCommand():
            return _welcome(command)
        case TranscriptCommand():
            return {"type": "stt", "session_id": command.session, "text": command.text}
        case EmotionCommand():
            return {"type": "llm", "session_id": command.session, "emotion": command.emotion, "text": ""}
        case AnswerStartCommand():
            return _tts(command.session, "start")
        case SentenceStartCommand():
            return {**_tts(command.session, "sentence_start"), "text": command.text}
        case AnswerStopCommand():
            return _tts(command.session, "stop")
        case GoodbyeCommand():
            return {"type": "goodbye", "session_id": command.session}
        case AlertCommand() | NotifyCommand():
            return _outside(command)
        case InitializeCommand() | InitializedCommand() | ListToolsCommand() | CallToolCommand():
            return {"type": "mcp", "session_id": command.session, "payload": _mcp(command)}
        case _:
            assert_never(command)


def _outside(command: AlertCommand | NotifyCommand) -> dict[str, Any]:
    """Return a message that belongs to no session."""
    if isinstance(command, NotifyCommand):
        return notify.message(command.url, [notify.Subtitle(0, command.text)])
    return {"type": "alert", "status": command.status, "message": command.message, "emotion": command.emotion}


def _tts(session: str, state: str) -> dict[str, Any]:
    return {"type": "tts", "session_id": session, "state": state}


def _welcome(command: HelloCommand) -> dict[str, Any]:
    udp = {
        "server": command.host,
        "port": command.port,
        "encryption": "aes-128-ctr",
        "key": command.key,
        "nonce": command.nonce,
    }
    audio = {
        "format": "opus",
        "sample_rate": command.downlink.sample_rate,
        "channels": 1,
        "frame_duration": command.downlink.frame_ms,
    }
    return {
        "type": "hello",
        "version": 3,
        "transport": "udp",
        "session_id": command.session,
        "udp": udp,
        "audio_params": audio,
    }


def _mcp(command: InitializeCommand | InitializedCommand | ListToolsCommand | CallToolCommand) -> dict[str, Any]:
    match command:
        case InitializeCommand():
            return jsonrpc.request(command.id, "initialize", _initialize_params(command))
        case InitializedCommand():
            return jsonrpc.notification("notifications/initialized")
        case ListToolsCommand():
            return jsonrpc.request(command.id, "tools/list", {"cursor": command.cursor})
        case CallToolCommand():
            return jsonrpc.request(command.id, "tools/call", {"name": command.name, "arguments": command.arguments})
        case _:
            assert_never(command)


def _initialize_params(command: InitializeCommand) -> dict[str, Any]:
    vision = {"url": command.vision_url, "token": command.vision_token or ""} if command.vision_url else None
    return {
        "protocolVersion": "2024-11-05",
        "capabilities": {"vision": vision} if vision else {},
        "clientInfo": {"name": "fleet", "version": "1"},
    }


DIALECT = XiaozhiDialect()
