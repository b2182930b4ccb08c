"""xiaozhi's messages on a WebSocket, where they differ from those over MQTT and UDP (websocket_protocol.cc, 2.4.2).

Both hellos name another transport, and the server's one has no UDP channel. Audio frames are bare Opus packets, which
is version 1 of the binary protocol. There is no goodbye: the end of the connection is the end of the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from fleet.wire.json_text import dump, parse
from fleet.wire.toc import FRAME_MS

PATH: Final = "/xiaozhi/v1/"
TAKEN_OVER: Final = 4001
"""Close code: another client is this device now."""
MQTT_VERSION: Final = 3
"""`version` of a hello over MQTT."""
PCM_RATE: Final = 16_000
PCM_FRAME_MS: Final = 60
_FIRST: Final = 1

_Hex = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{32}$")]


Sound = Literal["opus", "pcm"]
"""What audio frames are: Opus packets, or, for pages of browsers without an encoder, s16le mono of one packet."""


class ClientHello(NamedTuple):
    """A client's hello."""

    message: bytes
    """The same hello as a device says it over MQTT."""
    sound: Sound
    """What the client's audio frames are."""
    frame_ms: int
    """Length of an audio frame of the client; the server refuses a hello with one that it does not have."""


class NotHello(ValueError):
    """A frame is no hello that this server can answer; the text says why, without what the client sent."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's hello over MQTT, and the audio channel that it names.

    `key` and `nonce` are 16 bytes each.
    """

    session: str
    host: str
    port: int
    key: bytes
    nonce: bytes
    rate: int
    """Of what the server says, in Hz."""
    frame_ms: int
    _audio: Mapping[str, Any]

    def frame(self, sound: Sound) -> str:
        """Return the same hello as a WebSocket has it."""
        audio = {**self._audio, "format": sound}
        hello = {"type": "hello", "transport": "websocket", "session_id": self.session, "audio_params": audio}
        return dump(hello).decode()


class _Udp(BaseModel):
    server: str
    port: int = Field(gt=0, lt=65536)
    key: _Hex
    nonce: _Hex


class _Audio(BaseModel, extra="allow"):
    sample_rate: int
    frame_duration: int


class _Welcome(BaseModel):
    type: Literal["hello"]
    session_id: str
    udp: _Udp
    audio_params: _Audio


def is_voice_path(target: str) -> bool:
    """Whether a request's target is that of voice clients, with or without the last slash."""
    return target.partition("?")[0].rstrip("/") == PATH.rstrip("/")


def to_mqtt(frame: bytes) -> ClientHello:
    """Return a client's hello as a device says it over MQTT, and what the client's audio frames are.

    Raises:
        NotHello: It is no hello, or one with a binary protocol or a sound that this server does not have.
    """
    document = _object(frame)
    if document is None or document.get("type") != "hello":
        raise NotHello("the first frame is no hello")
    if document.get("transport", "websocket") != "websocket":
        raise NotHello("the hello names another transport")
    if document.get("version", _FIRST) != _FIRST:
        raise NotHello("only version 1 of the binary protocol is served")
    audio = document.get("audio_params")
    sound = audio.get("format", "opus") if isinstance(audio, dict) else "opus"
    if sound == "pcm" and isinstance(audio, dict):
        if (audio.get("sample_rate"), audio.get("frame_duration")) != (PCM_RATE, PCM_FRAME_MS):
            raise NotHello(f"pcm is served at {PCM_RATE} Hz in frames of {PCM_FRAME_MS} ms")
        document = {**document, "audio_params": {**audio, "format": "opus"}}
    elif sound != "opus":
        raise NotHello("audio is opus or pcm")
    message = dump({**document, "transport": "udp", "version": MQTT_VERSION})
    frame_ms = audio.get("frame_duration") if isinstance(audio, dict) else None
    return ClientHello(message, cast("Sound", sound), frame_ms if frame_ms in FRAME_MS else PCM_FRAME_MS)


def is_kind(frame: bytes, kind: str) -> bool:
    """Whether a message is of a type."""
    # Most messages need no parser to see that they are not.
    if kind.encode() not in frame:
        return False
    document = _object(frame)
    return document is not None and document.get("type") == kind


def read_welcome(payload: bytes) -> Welcome | None:
    """Return the server's hello; None if the message is not one."""
    document = _object(payload)
    try:
        found = _Welcome.model_validate(document)
    except (ValidationError, RecursionError):
        return None
    udp, audio = found.udp, found.audio_params
    return Welcome(
        found.session_id,
        udp.server,
        udp.port,
        bytes.fromhex(udp.key),
        bytes.fromhex(udp.nonce),
        audio.sample_rate,
        audio.frame_duration,
        audio.model_dump(),
    )


def goodbye(session: str) -> bytes:
    """Return the goodbye of a device over MQTT."""
    return dump({"type": "goodbye", "session_id": session})


def _object(frame: bytes) -> dict[str, Any] | None:
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
