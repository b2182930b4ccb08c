"""One listening period: an audio stream, and the utterances that are heard in it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol, assert_never

from fleet.adapters.speech.audio_input import VadFrame
from fleet.roles.edge.listening.push_to_talk import PushToTalk
from fleet.roles.edge.listening.recognition import Recognition
from fleet.roles.edge.listening.utterance_collector import (
    BYTES_PER_MS,
    PausedUtterance,
    Utterance,
    UtteranceCollector,
)
from fleet.roles.edge.services import EdgeServices
from fleet.wire.messages import AudioFormat

SLACK_MS = 60.0
"""Audio that a stream may keep back until more comes: its detector works on windows of its own."""
PADDING_MS = 2000.0
"""Silence without a number that a press may hold: more would keep the recogniser busy when the button is let go."""


class SpeechListener(Protocol):
    """Whoever acts on what a session's user says."""

    def take_utterance(self, utterance: Utterance, now: float) -> None:
        """Take an utterance that has ended."""

    def take_voice(self, now: float) -> None:
        """Take note of a frame of speech inside an utterance."""

    def listen_unasked(self, now: float) -> None:
        """The device has spoken for a while and nobody listens; may be called again."""


@dataclass(frozen=True, slots=True)
class SpeechConsumers:
    """Who acts on what one session's user says."""

    listener: SpeechListener
    recognition: Recognition
    """Begins to recognise what has perhaps ended."""
    press: PushToTalk
    """Answers a press in which nothing was heard."""


class ListeningPeriod:
    """Feeds an audio stream and collects what is heard.

    Each listening period has a stream of its own, so nothing that was fed earlier is heard in it.

    Args:
        services: Of the edge.
        uplink: Format of the packets.
        collector: Cuts what is heard into utterances.
        consumers: Act on them.
    """

    def __init__(
        self, services: EdgeServices, uplink: AudioFormat, collector: UtteranceCollector, consumers: SpeechConsumers
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._frame_ms = uplink.frame_ms
        self._stream = services.audio_input.open(uplink, self)
        self._counters = services.counters
        self._behind_ms = 0.0
        self._padded_ms = 0.0
        self._closed = False
        self._listener, self._recognition = consumers.listener, consumers.recognition
        self.collector = collector

    @property
    def caught_up(self) -> bool:
        """Whether all that was fed was heard."""
        return self._behind_ms <= SLACK_MS

    @property
    def speaking(self) -> bool:
        """Whether somebody says something, or may: what came but was not heard yet is not known to be silence."""
        return (self.collector.recording and self.collector.voiced_ms > 0) or not self.caught_up

    def feed(self, packet: bytes) -> None:
        """Take one packet; dropped and counted when the stream's queue is full."""
        if self._stream.feed(packet):
            self._behind_ms += self._frame_ms
        else:
            self._counters["queue_full"] += 1

    def may_pad(self) -> bool:
        """Count one more silent frame that claims no number; return whether it is to be fed."""
        self._padded_ms += self._frame_ms
        return not self.collector.pressed or self._padded_ms <= PADDING_MS

    def finish(self) -> Utterance | None:
        """End the period; return what was said, None when it was nothing."""
        utterance = self.collector.finish()
        self.close()
        return utterance

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._stream.close()

    def on_frame(self, frame: VadFrame) -> None:
        """Collect a frame, and let the listener act on what it led to."""
        if self._closed:
            return
        now = self._loop.time()
        self._behind_ms -= len(frame.pcm) / BYTES_PER_MS
        match self.collector.add(frame.pcm, frame.speech, now):
            case Utterance() as utterance:
                self._listener.take_utterance(utterance, now)
            case PausedUtterance(so_far):
                self._recognition.prepare(so_far)
            case True:
                self._listener.take_voice(now)
            case False:
                return
            case other:
                assert_never(other)
