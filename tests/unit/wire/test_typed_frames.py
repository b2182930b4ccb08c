"""The short way gives the same events as the one that reads every frame."""

import dataclasses
import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from fleet.wire import dialects, typed_frames
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.json_text import parse

ODD = st.sampled_from(
    [None, True, False, 0, 3, 4.0, 16_000, 16_000.0, 60, "16000", "auto", "realtime", "", "é\ud800", -1, 2**70, [], {}]
) | st.sampled_from([1e308, 5e-324, 10**9])
FEATURES = st.dictionaries(st.sampled_from(["mcp", "aec", "glyph_push", "x"]), ODD)
AUDIO = st.dictionaries(
    st.sampled_from(["sample_rate", "frame_duration", "format"]), st.sampled_from([16_000, 24_000, 60, 20, "x", 7.5])
)
ANSWERS = st.dictionaries(
    st.sampled_from(["id", "result", "error", "method", "jsonrpc"]),
    ODD | st.recursive(ODD, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
)
FRAMES = st.fixed_dictionaries(
    {"type": st.sampled_from(["hello", "listen", "abort", "goodbye", "mcp", "tts", 3])},
    optional={
        "version": ODD,
        "features": FEATURES | ODD,
        "audio_params": AUDIO | ODD,
        "session_id": ODD | st.text(),
        "state": st.sampled_from(["start", "stop", "detect", "x", 1]),
        "mode": st.sampled_from(["auto", "manual", "realtime", "x", None]),
        "text": ODD | st.text(),
        "reason": ODD,
        "payload": ANSWERS | ODD,
        "jsonrpc": ODD,
    },
)


@given(FRAMES, st.booleans())
def test_both_ways_agree(document: dict[str, object], ascii_only: bool) -> None:
    frame = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    event = typed_frames.read(frame)
    if event is not None:
        read = parse(frame)
        assert not any(one.claims(read) for one in dialects.DIALECTS.values())
        assert event == DIALECT.read(read)


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": True}, "audio_params": {}},
        {"type": "listen", "session_id": "s", "state": "start", "mode": "auto"},
        {"type": "listen", "session_id": "s", "state": "detect", "text": "hey"},
        {"type": "abort", "session_id": "s", "reason": "wake_word_detected"},
        {"type": "goodbye", "session_id": "s"},
        {"type": "mcp", "session_id": "s", "payload": {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}},
    ],
)
def test_the_frames_of_firmware_go_the_short_way(frame: dict[str, object]) -> None:
    event = typed_frames.read(json.dumps(frame).encode())
    assert event is not None and event == DIALECT.read(frame)


def test_deep_results_are_left_to_the_other_way() -> None:
    deep = b'{"type":"mcp","payload":{"id":1,"result":' + b"[" * 401 + b"]" * 401 + b"}}"
    assert typed_frames.read(deep) is None
    assert typed_frames.read(b'{"type":"mcp","payload":{"id":1,"result":' + b"[" * 100_000 + b"}}") is None


NUMBER = b'{"type":"mcp","payload":{"id":1,"result":[%b]}}'


@pytest.mark.parametrize("number", [b"1.7976931348623157e308", b"5e-324", b"-0.0", b"1e-999", b"1e999", b"9" * 4000])
def test_numbers_are_the_same_both_ways(number: bytes) -> None:
    frame = NUMBER % number
    event = typed_frames.read(frame)
    assert event is not None and repr(event) == repr(dataclasses.replace(DIALECT.read(parse(frame)), text=event.text))


@pytest.mark.parametrize("result", [b"9" * 5000, b'"\xff"', b'"\\ud800"', b"[" * 300 + b"]" * 300])
def test_results_that_the_short_way_cannot_read_are_left_to_the_other_one(result: bytes) -> None:
    assert typed_frames.read(NUMBER % result) is None


def test_msgspec_reads_no_floats() -> None:
    """It takes 14 µs for 1e308: a frame full of them would block the worker for half a second."""
    decoders = [one for one in vars(typed_frames).values() if isinstance(one, msgspec.json.Decoder)]
    read = {type(one) for decoder in decoders for one in _types(inspect.type_info(decoder.type))}
    assert inspect.StructType in read
    assert not read & {inspect.AnyType, inspect.FloatType, inspect.DecimalType}


def _types(known: object) -> Iterator[object]:
    """Yield a type, and all types in it."""
    if isinstance(known, tuple):
        for one in known:
            yield from _types(one)
    elif isinstance(known, inspect.Type | inspect.Field):
        yield known
        for member in known.__struct_fields__:
            yield from _types(getattr(known, member))
