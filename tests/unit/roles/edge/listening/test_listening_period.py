"""What a listening period tells its audio stream; all else is tested with a whole edge (test_uplink.py)."""

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.adapters.speech.audio_input import VadFrame
from fleet.roles.edge.listening.listening_period import ListeningPeriod
from fleet.roles.edge.listening.utterance_collector import BYTES_PER_MS, UtteranceCollector
from fleet.wire.messages import AudioFormat

FRAME_MS = 60


class Stream:
    def __init__(self) -> None:
        self.recording, self.waiting = False, 0

    def feed(self, packet: bytes, played: object = None) -> bool:
        self.waiting += 1
        return True


class Consumer:
    """Takes note of nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: False


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
async def period(stream: Stream) -> ListeningPeriod:
    audio_input = SimpleNamespace(open=lambda *_, **__: stream)
    services = cast(Any, SimpleNamespace(audio_input=audio_input, counters=Counter[str]()))
    consumers = cast(Any, SimpleNamespace(listener=Consumer(), pauses=Consumer()))
    return ListeningPeriod(services, AudioFormat(16_000, FRAME_MS), UtteranceCollector(300), consumers)


def hear(period: ListeningPeriod, *speech: float) -> None:
    for one in speech:
        period.on_frame(VadFrame(bytes(FRAME_MS * BYTES_PER_MS), one))


async def test_the_stream_knows_whether_an_utterance_is_under_way(period: ListeningPeriod, stream: Stream) -> None:
    hear(period, 0.1, 0.1)
    assert not stream.recording
    hear(period, 0.9, 0.9)
    assert stream.recording
    hear(period, *[0.1] * 5)
    assert not stream.recording, "silence has ended it"


async def test_a_stream_whose_utterance_was_put_back_judges_silence_sparsely_again(
    period: ListeningPeriod, stream: Stream
) -> None:
    hear(period, 0.9, 0.9)
    period.put_back()
    assert not stream.recording
    hear(period, 0.1)
    assert not stream.recording


async def test_a_period_has_caught_up_when_at_most_one_packet_of_the_usual_length_waits(
    period: ListeningPeriod, stream: Stream
) -> None:
    period.feed(b"one")
    assert period.caught_up
    period.feed(b"two")
    assert not period.caught_up
    stream.waiting = 0
    assert period.caught_up
