"""xiaozhi's messages on a WebSocket, where they differ from those over MQTT and UDP (websocket_protocol.cc, 2.4.2).

Both hellos name another transport, and the server's one has no UDP channel. Audio frames are bare Opus packets, which
is version 1 of the binary protocol. There is no goodbye: the end of the connection is the end of the session.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from fleet.wire.json_text import dump, parse

PATH: Final = "/xiaozhi/v1/"
MQTT_VERSION: Final = 3
"""`version` of a hello over MQTT."""
_FIRST: Final = 1

_Hex = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{32}$")]


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
    frame: bytes
    """The same hello as a WebSocket has it."""


class _Udp(BaseModel):
    server: str
    port: int = Field(gt=0, lt=65536)
    key: _Hex
    nonce: _Hex


class _Welcome(BaseModel):
    type: Literal["hello"]
    session_id: str
    udp: _Udp
    audio_params: dict[str, Any]


def to_mqtt(frame: bytes) -> bytes:
    """Return a client's hello as a device says it over MQTT.

    Raises:
        NotHello: It is no hello, or one with a binary protocol that this server does not have.
    """
    document = _object(frame)
    if document is None or document.get("type") != "hello":
        raise NotHello("the first frame is no hello")
    if document.get("transport", "websocket") != "websocket":
        raise NotHello("the hello names another transport")
    if document.get("version", _FIRST) != _FIRST:
        raise NotHello("only version 1 of the binary protocol is served")
    return dump({**document, "transport": "udp", "version": MQTT_VERSION})


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
    frame = dump(
        {
            "type": "hello",
            "transport": "websocket",
            "session_id": found.session_id,
            "audio_params": found.audio_params,
        }
    )
    udp = found.udp
    return Welcome(found.session_id, udp.server, udp.port, bytes.fromhex(udp.key), bytes.fromhex(udp.nonce), frame)


def goodbye(session: str) -> bytes:
    """Return the goodbye of a device over MQTT."""
    return dump({"type": "goodbye", "session_id": session})


def _object(frame: bytes) -> dict[str, Any] | None:
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
