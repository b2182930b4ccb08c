import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fleet.adapters.speech.audio_input import MANY, AudioInput, VadFrame
from fleet.adapters.speech.echo_canceller import EchoCanceller
from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.opus import Encoder
from fleet.adapters.speech.stream_state import StreamState
from fleet.adapters.speech.vad_silero import Samples, SileroVad, VadState
from fleet.core.reference import NOTHING, Played
from fleet.wire.messages import AudioFormat
from tests.support.garbage import no_garbage
from tests.support.leaping import leaping
from tests.support.listening import UPLINK, Listener, packets, running, tone

FRAME_BYTES = 1920


class LoudnessVad(SileroVad):
    """Stands for the model where only the handling of streams is in question: loud is speech. Counts its own calls."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.broken = False
        self.seen: dict[int, list[float]] = {}

    def probabilities(self, windows: Sequence[tuple[VadState, Samples]]) -> list[float]:
        if self.broken:
            raise RuntimeError("broken")
        assert len({id(state) for state, _ in windows}) == len(windows), "a stream twice in one batch"
        assert threading.current_thread() is not threading.main_thread()
        self.batches.append(len(windows))
        assert all(len(samples) == 512 for _, samples in windows)
        return [float(np.abs(samples).max() > 0.1) for _, samples in windows]


@pytest.fixture
def vad() -> LoudnessVad:
    return LoudnessVad()


@pytest.fixture
async def ears(vad: LoudnessVad) -> AsyncIterator[AudioInput]:
    async with running(AudioInput(vad)) as made:
        yield made


async def test_packets_are_heard_in_order_with_their_speech(ears: AudioInput) -> None:
    listener = Listener(ears)
    for packet in packets(bytes(FRAME_BYTES * 5) + tone(0.3) + bytes(FRAME_BYTES * 5)):
        assert listener.ear.feed(packet)
    frames = await listener.wait(15)
    assert {len(frame.pcm) for frame in frames} == {FRAME_BYTES}
    assert [frame.speech for frame in frames[:5] + frames[6:9] + frames[12:]] == [0.0] * 5 + [1.0] * 3 + [0.0] * 3


@pytest.mark.parametrize("packet", [b"", b"\x58", b"\x58\x00\x00", b"\xff\xff\xff\xff\xff", bytes(2000)])
async def test_a_packet_without_audio_or_damaged_is_silence_and_the_stream_goes_on(
    ears: AudioInput, packet: bytes
) -> None:
    listener = Listener(ears)
    sound = packets(tone(0.3))
    for fed in (*sound, packet, *sound):
        listener.ear.feed(fed)
    frames = await listener.wait(11)
    assert frames[5].pcm == bytes(FRAME_BYTES)
    assert frames[10].speech == 1.0


async def test_the_rest_of_an_echo_is_no_speech_and_what_a_user_says_over_it_is(vad: LoudnessVad) -> None:
    class Canceller(EchoCanceller):
        def process(self, near: bytes, number: int | None) -> tuple[bytes, bool]:
            return near[::-1], not number

    sound, played = packets(tone(0.36)), Played(1, ((1, Encoder(24_000, 60).encode(tone(0.09))),))
    async with running(AudioInput(vad, echo=EchoPool(Canceller))) as ears:
        listener, other = Listener(ears, echoes=True), Listener(ears)
        for heard in (listener, other):
            for number, packet in enumerate(sound):
                heard.ear.feed(packet, played if number < 3 else NOTHING)
        frames, plain = await listener.wait(6), await other.wait(6)
    assert [frame.speech for frame in frames] == [0.0] * 3 + [1.0] * 3
    assert frames[2].pcm == plain[2].pcm[::-1]
    assert [frame.speech for frame in plain[1:]] == [1.0] * 5


async def test_silence_is_as_long_as_a_frame_of_the_stream(ears: AudioInput) -> None:
    listener = Listener(ears, AudioFormat(48_000, 20))
    listener.ear.feed(b"")
    assert (await listener.wait(1))[0].pcm == bytes(640)


async def test_a_packet_in_which_no_window_ends_has_the_last_known_speech(ears: AudioInput) -> None:
    listener = Listener(ears, AudioFormat(16_000, 20))
    for packet in packets(tone(0.2), 20):
        listener.ear.feed(packet)
    frames = await listener.wait(10)
    assert frames[0].speech == 0.0
    assert [frame.speech for frame in frames[2:]] == [1.0] * 8


async def test_many_streams_are_judged_together(ears: AudioInput, vad: LoudnessVad) -> None:
    listeners = [Listener(ears) for _ in range(20)]
    for packet in packets(tone(0.3)):
        for listener in listeners:
            listener.ear.feed(packet)
    for listener in listeners:
        assert [frame.speech for frame in await listener.wait(5)][1:] == [1.0] * 4
    assert max(vad.batches) == 20


async def test_after_a_large_batch_two_ticks_are_judged_together(
    ears: AudioInput, vad: LoudnessVad, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.speech.audio_input._NEXT_TICK_SECONDS", 500.0)
    monkeypatch.setattr("fleet.adapters.speech.audio_input.GATHER_SECONDS", 5000.0)
    leap, quiet = leaping(monkeypatch), packets(bytes(FRAME_BYTES))[0]
    some, others = [[Listener(ears) for _ in range(MANY)] for _ in range(2)]
    for listener in some:
        listener.ear.feed(quiet)
    await some[-1].wait(1)
    for tick in (others, some):
        for listener in tick:
            listener.ear.feed(quiet)
        await asyncio.sleep(0)
        leap(501.0)
    for listener in others:
        await listener.wait(1)
    assert vad.batches == [MANY, 2 * MANY]


async def test_what_comes_last_after_a_large_batch_is_not_kept_waiting(ears: AudioInput, vad: LoudnessVad) -> None:
    listeners, packet = [Listener(ears) for _ in range(MANY)], packets(tone(0.06))[0]
    for listener in listeners:
        listener.ear.feed(packet)
    await listeners[-1].wait(1)
    listeners[0].ear.feed(packet)
    assert vad.batches == [MANY]
    await listeners[0].wait(2)


async def test_a_full_queue_drops_and_counts(vad: LoudnessVad) -> None:
    ears = AudioInput(vad, longest=8, longest_each=5)
    greedy, modest = Listener(ears), Listener(ears)
    packet = packets(tone(0.06))[0]
    assert [greedy.ear.feed(packet) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [modest.ear.feed(packet) for _ in range(4)] == [True] * 3 + [False]
    assert (greedy.ear.dropped, modest.ear.dropped) == (2, 1)
    async with running(ears):
        await greedy.wait(5)
        await modest.wait(3)
        assert greedy.ear.feed(packet)
        await greedy.wait(6)


async def test_outside_of_utterances_the_end_of_a_packet_is_judged_and_inside_all_of_it(vad: LoudnessVad) -> None:
    quiet = packets(bytes(FRAME_BYTES * 8))
    for recording, windows in ((False, 8), (True, 15)):
        vad.batches.clear()
        async with running(AudioInput(vad)) as ears:
            listener = Listener(ears)
            listener.ear.recording = recording
            for packet in quiet:
                listener.ear.feed(packet)
            await listener.wait(8)
        assert sum(vad.batches) == windows


def test_a_window_that_is_judged_alone_has_the_sound_before_it_as_context() -> None:
    sound = np.arange(1, 4000, dtype="<i2")
    for sizes in ([960, 960], [320, 320, 320, 320], [960, 320, 960], [530, 530, 530]):
        stream, at = StreamState(b""), 0
        for size in sizes:
            at += size
            for window in stream.cut(sound[at - size : at].tobytes(), sparse=True):
                heard = np.concatenate((stream.state.context, window))
                end = at - len(stream.rest)
                assert_array_equal(heard * 32768, np.concatenate((np.zeros(64), sound))[end - 512 : end + 64])
                stream.state.context = window[-64:]  # as the model leaves it


async def test_after_a_window_that_may_be_speech_all_of_the_next_packet_is_judged(vad: LoudnessVad) -> None:
    async with running(AudioInput(vad)) as ears:
        listener = Listener(ears)
        for packet in packets(tone(0.3)):
            listener.ear.feed(packet)
        await listener.wait(5)
    assert sum(vad.batches) == 1 + 4 * FRAME_BYTES // 2 // 512


async def test_a_closed_ear_hears_nothing_more(ears: AudioInput) -> None:
    closed, other = Listener(ears), Listener(ears)
    packet = packets(tone(0.06))[0]
    closed.ear.feed(packet)
    closed.ear.close()
    assert not closed.ear.feed(packet)
    other.ear.feed(packet)
    await other.wait(1)
    assert closed.frames == []
    assert closed.ear.dropped == 1


async def test_one_listener_that_fails_costs_the_others_nothing(ears: AudioInput) -> None:
    class Failing:
        def on_frame(self, frame: VadFrame) -> None:
            raise ValueError("listener")

    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(str(context["exception"])))
    failing, other = ears.open(UPLINK, Failing()), Listener(ears)
    packet = packets(tone(0.06))[0]
    for _ in range(3):
        failing.feed(packet)
        other.ear.feed(packet)
    await other.wait(3)
    assert reported == ["listener"] * 3


async def test_a_batch_that_fails_becomes_silence_and_the_next_one_is_heard(ears: AudioInput, vad: LoudnessVad) -> None:
    listener = Listener(ears)
    sound = packets(tone(0.3))
    vad.broken = True
    for packet in sound:
        listener.ear.feed(packet)
    frames = await listener.wait(5)
    assert all(frame == VadFrame(bytes(FRAME_BYTES), 0.0) for frame in frames)
    vad.broken = False
    for packet in sound:
        listener.ear.feed(packet)
    assert (await listener.wait(10))[9].speech == 1.0


async def test_the_thread_ends_with_run(vad: LoudnessVad) -> None:
    async with running(AudioInput(vad)) as ears:
        listener = Listener(ears)
        listener.ear.feed(b"")
        await listener.wait(1)
        thread = next(thread for thread in threading.enumerate() if thread.name.startswith("audio_input"))
    await asyncio.to_thread(thread.join, 240)
    assert not thread.is_alive()


async def test_a_stream_that_is_closed_is_freed_without_the_garbage_collector(ears: AudioInput) -> None:
    with no_garbage():
        listener = Listener(ears)
        for packet in packets(tone(0.3)):
            listener.ear.feed(packet)
        await listener.wait(5)
        listener.ear.close()
        del listener
