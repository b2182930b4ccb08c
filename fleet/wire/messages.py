"""The messages that all dialects share: from a device (events) and to a device (commands).

Bad input is an event too, `MalformedEvent`; no codec raises for what a device sends. The messages that each session
has are `Struct`s: to make one takes a fifth of the time of a frozen dataclass.
"""

from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from pydantic import JsonValue

from fleet.wire.mcp import ToolSpec

RequestId = str | int | float
"""The id of a device's request; the answer repeats it unchanged."""
ListenMode = Literal["auto", "manual", "realtime"]


class AudioFormat(Struct, frozen=True):
    """An Opus stream: `sample_rate` in Hz, `frame_ms` in milliseconds a packet; always mono."""

    sample_rate: int
    frame_ms: int


class HelloEvent(Struct, frozen=True):
    """The device opens a session; this ends its earlier session."""

    uplink: AudioFormat
    mcp: bool = False
    aec: bool = False
    """The server cancels echo: the uplink carries the timestamps of the downlink (contract 4.4)."""
    glyph_push: bool = False
    version: int = 3


@dataclass(frozen=True, slots=True)
class ListenStartEvent:
    """The microphone is open."""

    session: str
    mode: ListenMode


@dataclass(frozen=True, slots=True)
class ListenStopEvent:
    """Push-to-talk was released; up to four packets may still follow."""

    session: str


@dataclass(frozen=True, slots=True)
class DetectEvent:
    """The device detected a wake word, whose audio may arrive before or after this message; or a text was typed."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class AbortEvent:
    """The user interrupts the answer."""

    session: str
    reason: str


class GoodbyeEvent(Struct, frozen=True):
    """The device ended the session; it is never answered."""

    session: str


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    """The device answers a request: `result`, or `error` as text when the request failed.

    `plain`: the result is the tool's bare return value, not an MCP result object.
    """

    id: str
    result: JsonValue = None
    error: str | None = None
    plain: bool = False
    text: bytes = field(default=b"", compare=False)
    """The result as the device sent it; empty if it is not at hand."""


@dataclass(frozen=True, slots=True)
class RegisterToolsEvent:
    """The device sends its whole tool list, which replaces the one before; to be confirmed under `id`."""

    id: RequestId
    mac: str | None
    """Canonical; None if the message names none."""
    tools: tuple[ToolSpec, ...]
    provided: tuple[str, ...] = ()
    """Names of tools that the device lists but that run on the server (`main_type` "local")."""
    login: tuple[str, str] | None = None
    """User name and password that prove its MAC on a connection without broker."""


@dataclass(frozen=True, slots=True)
class BadRequestEvent:
    """An invalid request that must be answered with this error; `code` is JSON-RPC's."""

    id: RequestId | None
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class NotificationEvent:
    """A notification of the device; never answered."""

    method: str
    params: JsonValue = None


@dataclass(frozen=True, slots=True)
class IgnoredEvent:
    """A well-formed message of a kind that this server does not use."""

    kind: str


@dataclass(frozen=True, slots=True)
class MalformedEvent:
    """Not a message of this dialect; `reason` is for the log and contains none of the message's content."""

    reason: str


DeviceEvent = (
    HelloEvent
    | ListenStartEvent
    | ListenStopEvent
    | DetectEvent
    | AbortEvent
    | GoodbyeEvent
    | ResponseEvent
    | RegisterToolsEvent
    | BadRequestEvent
    | NotificationEvent
    | IgnoredEvent
    | MalformedEvent
)


class HelloCommand(Struct, frozen=True):
    """Answers a hello with the audio's address and key. `key` and `nonce` are 32 hex digits each."""

    session: str
    host: str
    port: int
    key: str
    nonce: str
    downlink: AudioFormat


@dataclass(frozen=True, slots=True)
class TranscriptCommand:
    """The recognised text of the user's utterance."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class EmotionCommand:
    """The face to show; one of the 21 names in `fleet.core.text.emotion`."""

    session: str
    emotion: str


@dataclass(frozen=True, slots=True)
class AnswerStartCommand:
    """Announces the answer's audio; sent at least 100 ms before it."""

    session: str


@dataclass(frozen=True, slots=True)
class SentenceStartCommand:
    """The text of the sentence whose audio begins now."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerStopCommand:
    """The answer is over, or was interrupted."""

    session: str


@dataclass(frozen=True, slots=True)
class GoodbyeCommand:
    """The server ends the session."""

    session: str


@dataclass(frozen=True, slots=True)
class AlertCommand:
    """A message on the device's screen, outside a conversation."""

    status: str
    message: str
    emotion: str = "neutral"


@dataclass(frozen=True, slots=True)
class NotifyCommand:
    """Lets an idle device play the file at a URL while it shows a text (`fleet.wire.notify`); it answers nothing."""

    url: str
    text: str


@dataclass(frozen=True, slots=True)
class InitializeCommand:
    """Opens the device's tool server; the camera uploads to `vision_url` with `vision_token` where given."""

    id: int
    session: str = ""
    vision_url: str | None = None
    vision_token: str | None = None


@dataclass(frozen=True, slots=True)
class InitializedCommand:
    """Confirms the device's answer to `InitializeCommand`."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class ListToolsCommand:
    """Asks for one page of tools; `cursor` is empty for the first."""

    id: int
    cursor: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class CallToolCommand:
    """Calls a tool of the device; published once and never again."""

    id: int
    name: str
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    session: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredCommand:
    """Confirms a registration; `provided` names the tools that were not registered because the server has them."""

    id: RequestId
    provided: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorCommand:
    """Answers a request that failed, or one that could not be parsed (then without an id)."""

    id: RequestId | None
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class AiMessageCommand:
    """The model's text: `chunk`s to be joined, at the end the whole text as `final`; or a `thought`."""

    kind: Literal["chunk", "final", "thought"]
    text: str


UsualCommand = (
    HelloCommand
    | TranscriptCommand
    | EmotionCommand
    | AnswerStartCommand
    | SentenceStartCommand
    | AnswerStopCommand
    | GoodbyeCommand
    | AlertCommand
    | NotifyCommand
    | InitializeCommand
    | InitializedCommand
    | ListToolsCommand
    | CallToolCommand
)
DeviceCommand = UsualCommand | RegisteredCommand | ErrorCommand | AiMessageCommand
