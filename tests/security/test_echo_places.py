"""Devices that keep their listening period after an answer, with the real cancellers and voice detection."""

import pytest

from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.echo_stream import MOST_CANCELLERS, EchoPool
from fleet.adapters.speech.opus import Encoder
from fleet.core.reference import EchoReference
from tests.support.listening import Listener, packets, running, tone
from tests.support.offline_speech import silero

pytestmark = pytest.mark.speech


async def test_who_plays_nothing_any_more_keeps_nobody_from_being_heard_over_an_echo() -> None:
    reference = EchoReference(60)
    reference.note_sent(60, Encoder(24_000, 60).encode(tone(0.09)))
    near = packets(tone(0.12, 300.0))[1]
    async with running(AudioInput(silero(), echo=EchoPool())) as audio_input:
        idle = [Listener(audio_input, echoes=True) for _ in range(MOST_CANCELLERS)]
        for listener in idle:
            listener.ear.feed(near, reference.find(60, 100.0))
            listener.ear.feed(near, reference.find(0, 100.1))
        assert all([any((await listener.wait(2))[1].pcm) for listener in idle])
        plays = Listener(audio_input, echoes=True)
        plays.ear.feed(near, reference.find(60, 110.0))
        assert any((await plays.wait(1))[0].pcm)
