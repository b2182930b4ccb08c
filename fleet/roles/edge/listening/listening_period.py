"""One listening period: an audio stream, and the utterances in it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol, assert_never

from fleet.adapters.speech.audio_input import AudioInputStream, VadFrame
from fleet.core.reference import EchoReference, Played
from fleet.roles.edge.agents import SessionAgent
from fleet.roles.edge.listening.push_to_talk import PushToTalk
from fleet.roles.edge.listening.utterance_collector import PausedUtterance, Utterance, UtteranceCollector
from fleet.roles.edge.services import EdgeServices
from fleet.wire.messages import AudioFormat

SLACK_MS = 60.0
"""Audio that a stream may hold until more comes: its detector works on windows of its own size."""
PADDING_MS = 2000.0
"""Silent frames without a number that a press may contain: more would delay recognition after the release."""


class SpeechListener(Protocol):
    """Acts on a session's speech."""

    def take_utterance(self, utterance: Utterance, now: float) -> None:
        """Take an utterance that has ended."""

    def take_voice(self, now: float) -> None:
        """Note a frame of speech inside an utterance."""

    def infer_listening(self, now: float) -> None:
        """Take note that audio has come for a while without `listen start`; may be called again."""


class PauseJudge(Protocol):
    """Judges the pauses in a session's utterances."""

    def pause(self, so_far: Utterance, period: "ListeningPeriod") -> None:
        """Take an utterance until a pause, which may be its end."""

    def note_voice(self) -> None:
        """Take note of speech after a pause."""

    def is_over(self, period: "ListeningPeriod") -> bool:
        """Return whether the silence has ended the utterance; it must be taken then."""

    def end(self) -> None:
        """Note that the utterance is over."""

    def drop(self) -> None:
        """Forget the utterance that is under way."""


@dataclass(frozen=True, slots=True)
class SpeechConsumers:
    """The parts that act on one session's speech."""

    listener: SpeechListener
    pauses: PauseJudge
    """Ends utterances early."""
    press: PushToTalk
    """Answers a press without speech."""
    agent: SessionAgent
    reference: EchoReference | None = None
    """Has what the device plays, if the server cancels its echo."""


class ListeningPeriod:
    """Feeds an audio stream and collects utterances.

    Each listening period has its own stream, so audio from before it has no effect in it.

    Args:
        services: Of the edge.
        uplink: Format of the packets.
        collector: Cuts the audio into utterances.
        consumers: Act on them.
        echoes: Whether to remove the echo of what the device plays.
    """

    __slots__ = (
        "_counters",
        "_frame_ms",
        "_listener",
        "_loop",
        "_padded_ms",
        "_pauses",
        "_stream",
        "closed",
        "collector",
        "direct",
    )

    def __init__(
        self,
        services: EdgeServices,
        uplink: AudioFormat,
        collector: UtteranceCollector,
        consumers: SpeechConsumers,
        *,
        echoes: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._frame_ms = uplink.frame_ms
        self._stream = services.audio_input.open(uplink, self, echoes=echoes)
        self._counters = services.counters
        self._padded_ms = 0.0
        self.closed = False
        """Whether nobody listens any more."""
        self.direct: AudioInputStream | None = None
        """The stream, if packets may go to it as they are: nothing of what is heard has to be left out first."""
        self._listener, self._pauses = consumers.listener, consumers.pauses
        self.collector = collector

    @property
    def caught_up(self) -> bool:
        """Whether all packets fed were processed."""
        return self._stream.waiting * self._frame_ms <= SLACK_MS

    @property
    def speaking(self) -> bool:
        """Whether there is speech, or may be in packets that were not processed yet."""
        return (self.collector.recording and self.collector.voiced_ms > 0) or not self.caught_up

    def feed(self, packet: bytes, played: Played | None = None) -> None:
        """Take one packet; it is dropped and counted if the stream's queue is full.

        Args:
            packet: Opus.
            played: What the device had just played; None if that is not known.
        """
        if not self._stream.feed(packet, played):
            self.note_dropped()

    def note_dropped(self) -> None:
        """Count a packet for which the stream's queue had no room."""
        self._counters["queue_full"] += 1

    def listen_directly(self) -> None:
        """Let packets go to the stream as they are from now on."""
        self.direct = self._stream

    def may_pad(self) -> bool:
        """Count a silent frame without a number; return whether to feed it."""
        self._padded_ms += self._frame_ms
        return not self.collector.pressed or self._padded_ms <= PADDING_MS

    def finish(self) -> Utterance | None:
        """End the period; return the utterance, None if there was no speech."""
        utterance = self.collector.finish()
        self.close()
        return utterance

    def commit(self) -> None:
        """End the utterance that is under way."""
        utterance = self.collector.commit()
        self._stream.recording = False
        self._listener.take_utterance(utterance, self._loop.time())

    def put_back(self) -> None:
        """End the utterance that is under way, and put it before the one that follows soon."""
        self.collector.rejoin(self.collector.commit())
        self._stream.recording = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.close()
            if not self.collector.pressed:
                self._pauses.drop()

    def on_frame(self, frame: VadFrame) -> None:
        """Collect a frame, and call the listener with the result."""
        if self.closed:
            return
        pcm, speech = frame
        if self.collector.add_silence(pcm, speech):
            # Nearly every frame.
            return
        now = self._loop.time()
        collected = self.collector.add(pcm, speech, now)
        self._stream.recording = self.collector.recording
        match collected:
            case Utterance() as utterance:
                self._pauses.end()
                self._listener.take_utterance(utterance, now)
            case PausedUtterance(so_far):
                self._pauses.pause(so_far, self)
            case True:
                self._pauses.note_voice()
                self._listener.take_voice(now)
            case False if self.collector.recording and self._pauses.is_over(self):
                self._stream.recording = False
                self._listener.take_utterance(self.collector.commit(), now)
            case False:
                return
            case other:
                assert_never(other)
