"""Read the usual frames of xiaozhi devices in one step, from bytes to the event (docs/adr/0029-msgspec.md).

A frame that is unusual in any way is left to `fleet.wire.dialects`, which reads every frame. Both give the same event,
except that members which nothing reads are not examined here: the other way refuses integers of more than 4,300 digits
and deep levels there too.

msgspec takes 14 µs for a float such as 1e308 or 5e-324, 2 µs a byte, so a value of any type is never read with it.
"""

from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder
from pydantic_core import from_json

from fleet.wire.jsonrpc import DEEPEST, id_text
from fleet.wire.messages import (
    AbortEvent,
    AudioFormat,
    DetectEvent,
    DeviceEvent,
    GoodbyeEvent,
    HelloEvent,
    ListenMode,
    ListenStartEvent,
    ListenStopEvent,
    ResponseEvent,
)
from fleet.wire.toc import FRAME_MS, SAMPLE_RATES

_ABSENT: Final = Raw()
_LONGEST_VERSION: Final = 9
"""Digits."""


class _Frame(Struct, frozen=True, kw_only=True, tag_field="type"):
    jsonrpc: Raw = _ABSENT
    """Another dialect claims frames with this member."""


class _Features(Struct, frozen=True):
    mcp: bool = False
    aec: bool = False
    glyph_push: bool = False


class _AudioParams(Struct, frozen=True):
    sample_rate: int = 16000
    frame_duration: int = 60


class _Hello(_Frame, frozen=True, kw_only=True, tag="hello"):
    version: Raw = Raw(b"3")
    features: _Features = _Features()
    audio_params: _AudioParams = _AudioParams()


class _Listen(_Frame, frozen=True, kw_only=True, tag="listen"):
    state: str
    session_id: str = ""
    mode: ListenMode = "auto"
    text: str = ""


class _Abort(_Frame, frozen=True, kw_only=True, tag="abort"):
    session_id: str = ""
    reason: str = ""


class _Goodbye(_Frame, frozen=True, kw_only=True, tag="goodbye"):
    session_id: str = ""


class _Answer(Struct, frozen=True):
    id: int | str
    result: Raw
    method: None = None
    error: None = None


class _Mcp(_Frame, frozen=True, kw_only=True, tag="mcp"):
    payload: _Answer


_AnyFrame = _Hello | _Listen | _Abort | _Goodbye | _Mcp
_FRAMES: Decoder[_AnyFrame] = Decoder(_AnyFrame)


def read(frame: bytes) -> DeviceEvent | None:
    """Return the event of a usual frame; None for any other frame."""
    try:
        usual = _FRAMES.decode(frame)
        return _event(usual) if usual.jsonrpc is _ABSENT else None
    except (ValueError, RecursionError):  # UTF-8 inside `result` is checked with it
        return None


def _event(frame: _AnyFrame) -> DeviceEvent | None:
    match frame:
        case _Hello():
            return _hello(frame)
        case _Listen(state="start"):
            return ListenStartEvent(frame.session_id, frame.mode)
        case _Listen(state="stop"):
            return ListenStopEvent(frame.session_id)
        case _Listen(state="detect"):
            return DetectEvent(frame.session_id, frame.text)
        case _Abort():
            return AbortEvent(frame.session_id, frame.reason)
        case _Goodbye():
            return GoodbyeEvent(frame.session_id)
        case _Mcp(payload=answer):
            return _response(answer)
        case _:
            return None


def _hello(frame: _Hello) -> DeviceEvent | None:
    audio, features, version = frame.audio_params, frame.features, bytes(frame.version)
    if audio.sample_rate not in SAMPLE_RATES or audio.frame_duration not in FRAME_MS:
        return None
    if len(version) > _LONGEST_VERSION or not version.isdigit():
        return None
    return HelloEvent(
        AudioFormat(audio.sample_rate, audio.frame_duration),
        mcp=features.mcp,
        aec=features.aec,
        glyph_push=features.glyph_push,
        version=int(version),
    )


def _response(answer: _Answer) -> DeviceEvent | None:
    text = bytes(answer.result)
    # A text with fewer brackets has fewer levels.
    if text.count(b"{") + text.count(b"[") > DEEPEST:
        return None
    return ResponseEvent(id_text(answer.id), result=from_json(text, cache_strings="keys"), text=text)
