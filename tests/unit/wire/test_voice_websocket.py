"""Hellos in both forms: what is served, what is refused, and what stays unchanged."""

import json
from typing import Any

import pytest

from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.messages import AudioFormat, GoodbyeEvent, HelloCommand, HelloEvent
from fleet.wire.voice_websocket import NotHello, goodbye, is_kind, is_voice_path, read_welcome, to_mqtt

AUDIO = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60}
KEY, NONCE = "00112233445566778899aabbccddeeff", "0100000012345678" + "0" * 16
WELCOME = HelloCommand("s1", "10.0.0.7", 8884, KEY, NONCE, AudioFormat(24000, 60))


def frame(**more: Any) -> bytes:
    return json.dumps({"type": "hello", "transport": "websocket", "audio_params": AUDIO, **more}).encode()


@pytest.mark.parametrize("more", [{}, {"version": 1}, {"features": {"mcp": True}}])
def test_a_hello_means_the_same_over_mqtt(more: dict[str, Any]) -> None:
    hello = DIALECT.receive(to_mqtt(frame(**more))[0])
    assert hello == HelloEvent(AudioFormat(16000, 60), mcp="features" in more)


def test_pcm_is_opus_over_mqtt() -> None:
    message, sound, frame_ms = to_mqtt(frame(audio_params=AUDIO | {"format": "pcm"}))
    assert (DIALECT.receive(message), sound, frame_ms) == (HelloEvent(AudioFormat(16000, 60)), "pcm", 60)
    assert json.loads(message)["audio_params"] == AUDIO


@pytest.mark.parametrize(("named", "frame_ms"), [(20, 20), (None, 60), ([20], 60), (33, 60)])
def test_the_length_of_a_frame_is_one_that_a_session_may_have(named: object, frame_ms: int) -> None:
    assert to_mqtt(frame(audio_params=AUDIO | {"frame_duration": named})).frame_ms == frame_ms


@pytest.mark.parametrize("audio", [{"format": "mp3"}, {"format": "pcm", "sample_rate": 48000}, {"format": ["pcm"]}])
def test_sounds_that_this_server_does_not_have_are_refused(audio: dict[str, Any]) -> None:
    with pytest.raises(NotHello):
        to_mqtt(frame(audio_params=AUDIO | audio))


@pytest.mark.parametrize(
    "wrong", [b"", b"[]", b"\xff", b'{"type": "listen"}', frame(version=2), frame(version="1"), frame(transport="udp")]
)
def test_what_is_no_hello_or_another_protocol_is_refused(wrong: bytes) -> None:
    with pytest.raises(NotHello):
        to_mqtt(wrong)


def test_the_servers_hello_has_no_udp_channel_and_all_else() -> None:
    found = read_welcome(DIALECT.send(WELCOME))
    assert found is not None
    assert (found.session, found.host, found.port) == ("s1", "10.0.0.7", 8884)
    assert (found.key.hex(), found.nonce.hex()) == (KEY, NONCE)
    # Firmware reads `transport` without looking whether it is there (websocket_protocol.cc).
    assert json.loads(found.frame("opus")) == {
        "type": "hello",
        "transport": "websocket",
        "session_id": "s1",
        "audio_params": AUDIO | {"sample_rate": 24000},
    }


@pytest.mark.parametrize("change", [{"type": "tts"}, {"udp": {}}, {"udp": {"key": "00"}}, {"session_id": 1}])
def test_another_message_is_no_welcome(change: dict[str, Any]) -> None:
    message = json.loads(DIALECT.send(WELCOME)) | change
    assert read_welcome(json.dumps(message).encode()) is None


@pytest.mark.parametrize("target", ["/xiaozhi/v1/", "/xiaozhi/v1", "/xiaozhi/v1/?a=b"])
def test_the_last_slash_does_not_count(target: str) -> None:
    assert is_voice_path(target) and not is_voice_path(f"/more{target}")


def test_kinds_are_read_from_the_type_alone() -> None:
    assert is_kind(b'{"type": "hello"}', "hello")
    assert not is_kind(b'{"type": "stt", "text": "hello"}', "hello")
    assert not is_kind(b"hello", "hello")


def test_the_end_of_a_connection_is_a_goodbye() -> None:
    assert DIALECT.receive(goodbye("s1")) == GoodbyeEvent("s1")
