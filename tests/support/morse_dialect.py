"""A dialect that fleet does not have, as docs/howto/add-a-dialect.md says to write one."""

from fleet.wire.dialect import Capabilities
from fleet.wire.json_text import LARGEST_FRAME, dump, parse
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import (
    AiMessageCommand,
    AnswerStartCommand,
    AnswerStopCommand,
    AudioFormat,
    CallToolCommand,
    DeviceCommand,
    DeviceEvent,
    GoodbyeCommand,
    HelloCommand,
    HelloEvent,
    IgnoredEvent,
    ListenStartEvent,
    MalformedEvent,
    RegisteredCommand,
    RegisterToolsEvent,
    ResponseEvent,
)


class MorseDialect:
    """Keys of 1844 and later: a short word in `m` says what a frame is."""

    name = "morse"
    capabilities = Capabilities(audio=True, text="pieces")
    mark = b'"m":'

    def claims(self, document: object) -> bool:
        return isinstance(document, dict) and "m" in document

    def receive(self, frame: bytes) -> DeviceEvent:
        if len(frame) > LARGEST_FRAME:
            return MalformedEvent("too large")
        try:
            return self.read(parse(frame))
        except (ValueError, RecursionError):
            return MalformedEvent("not morse")

    def read(self, document: object) -> DeviceEvent:
        match document:
            case {"m": "cq"}:
                return HelloEvent(AudioFormat(16_000, 60))
            case {"m": "k", "s": str(session)}:
                return ListenStartEvent(session, "auto")
            case {"m": "can", "id": str(number), "what": [*names]} if all(isinstance(name, str) for name in names):
                return RegisterToolsEvent(number, None, tuple(ToolSpec(name=name) for name in names))
            case {"m": "r", "id": int(number), "said": said} if not isinstance(number, bool):
                return ResponseEvent(str(number), said, plain=True)
            case {"m": str(kind)}:
                return IgnoredEvent(kind[:32])
            case _:
                return MalformedEvent("no m")

    def send(self, command: DeviceCommand) -> bytes:
        match command:
            case HelloCommand():
                return dump({"m": "de", "s": command.session, "at": f"{command.host}:{command.port}"})
            case AnswerStartCommand():
                return dump({"m": "vvv", "s": command.session})
            case AnswerStopCommand():
                return dump({"m": "ar", "s": command.session})
            case GoodbyeCommand():
                return dump({"m": "sk", "s": command.session})
            case RegisteredCommand():
                return dump({"m": "r", "id": command.id})
            case CallToolCommand():
                return dump({"m": "do", "id": command.id, "what": command.name, "how": command.arguments})
            case AiMessageCommand():
                return dump({"m": "qtc", "kind": command.kind, "text": command.text})
            case _:
                return b""


DIALECT = MorseDialect()
