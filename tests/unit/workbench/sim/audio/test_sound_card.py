from types import ModuleType, SimpleNamespace

import pytest

from fleet.ground.errors import Unavailable
from fleet.workbench.sim.audio import sound_card
from fleet.workbench.sim.audio.sound_card import LiveVoice, loudspeaker, microphone, sound_system

LOUD = b"\x00\x20" * 960


class _Stream:
    """Stands for a stream of the sound card, which no test machine has."""

    opened: list["_Stream"]

    def __init__(self, *, callback, samplerate, channels, dtype) -> None:  # type: ignore[no-untyped-def]
        self.callback, self.rate = callback, samplerate
        assert (channels, dtype) == (1, "int16")
        self.closed = False
        self.opened.append(self)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def start(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sounds() -> SimpleNamespace:
    _Stream.opened = []
    return SimpleNamespace(RawInputStream=_Stream, RawOutputStream=_Stream)


def test_a_live_voice_has_ended_with_its_last_loud_frame() -> None:
    voice = LiveVoice()
    voice.feed(LOUD * 3)
    for number in range(6):
        assert len(voice.take(1920, 1.0 + 0.06 * number)) == 1920
    assert voice.began == pytest.approx(1.0)
    assert voice.ended == pytest.approx(1.12)


def test_what_nobody_takes_is_forgotten() -> None:
    voice = LiveVoice()
    for _ in range(100):
        voice.feed(LOUD)
    taken = 0
    while any(voice.take(1920, 0.0)):
        taken += 1
    assert taken == 34


def test_the_microphone_feeds_the_first_voice_that_is_not_over(sounds: ModuleType) -> None:
    first, second = LiveVoice(), LiveVoice()
    first.over = True
    with microphone(sounds, [first, second]):
        (stream,) = _Stream.opened
        assert stream.rate == 16_000
        stream.callback(memoryview(LOUD), 960, None, None)
    assert not any(first.take(1920, 0.0))
    assert any(second.take(1920, 0.0))
    assert stream.closed


def test_the_loudspeaker_plays_in_order_and_fills_up_with_silence(sounds: ModuleType) -> None:
    with loudspeaker(sounds) as play:
        play(b"\x01\x02" * 2, 24_000)
        play(b"\x03\x04" * 2, 24_000)
        (stream,) = _Stream.opened
        out = bytearray(12)
        stream.callback(memoryview(out), 6, None, None)
        assert bytes(out) == b"\x01\x02\x01\x02\x03\x04\x03\x04" + bytes(4)
    assert stream.closed


class _PortAudioError(Exception):
    """As sounddevice raises it: its text has several lines."""


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (ImportError("No module named 'sounddevice'"), r"pip install 'fleet-voice\[mic\]'"),
        (OSError("PortAudio library not found"), "apt install libportaudio2"),
        (
            _PortAudioError("Error querying device -1\n"),
            "loudspeaker: Error querying device -1. Use --text",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, remedy: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    package = SimpleNamespace(PortAudioError=_PortAudioError, query_devices=fail)
    answer = (lambda _: package) if isinstance(fault, _PortAudioError) else fail
    monkeypatch.setattr(sound_card.importlib, "import_module", answer)
    with pytest.raises(Unavailable, match=remedy):
        sound_system()
