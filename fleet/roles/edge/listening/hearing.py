"""One listening period: an ear with its recorder."""

import asyncio
from collections.abc import Callable

from fleet.adapters.speech.audio_input import AudioInput, VadFrame
from fleet.roles.edge.listening.utterance_collector import BYTES_PER_MS, Utterance, UtteranceCollector
from fleet.wire.messages import AudioFormat

SLACK_MS = 60.0
"""Audio that an ear may keep back until more comes: its detector works on windows of its own."""
PADDING_MS = 2000.0
"""Silence without a number that a press may hold: more would keep the recogniser busy when the button is let go."""


class ListeningPeriod:
    """Feeds an ear and records what it hears.

    Each listening period has its own, so nothing that was fed earlier is heard in it.

    Args:
        ears: Opens the ear.
        uplink: Format of the packets.
        recorder: Takes what is heard.
    """

    def __init__(self, ears: AudioInput, uplink: AudioFormat, recorder: UtteranceCollector) -> None:
        self._loop = asyncio.get_running_loop()
        self._frame_ms = uplink.frame_ms
        self._ear = ears.open(uplink, self._hear)
        self._behind_ms = 0.0
        self._padded_ms = 0.0
        self._closed = False
        self.recorder = recorder
        self.on_voice: Callable[[float], None] = _ignore
        """Called with `now` for each frame of speech inside an utterance."""

    @property
    def caught_up(self) -> bool:
        """Whether all that was fed was heard."""
        return self._behind_ms <= SLACK_MS

    @property
    def speaking(self) -> bool:
        """Whether somebody says something, or may: what came but was not heard yet is not known to be silence."""
        return (self.recorder.recording and self.recorder.voiced_ms > 0) or not self.caught_up

    def feed(self, packet: bytes) -> bool:
        """Take one packet; False when the ear's queue is full."""
        if not self._ear.feed(packet):
            return False
        self._behind_ms += self._frame_ms
        return True

    def may_pad(self) -> bool:
        """Count one more silent frame that claims no number; return whether it is to be fed."""
        self._padded_ms += self._frame_ms
        return not self.recorder.pressed or self._padded_ms <= PADDING_MS

    def finish(self) -> Utterance | None:
        """End the period; return what was said, None when it was nothing."""
        utterance = self.recorder.finish()
        self.close()
        return utterance

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._ear.close()

    def _hear(self, frame: VadFrame) -> None:
        if self._closed:
            return
        now = self._loop.time()
        self._behind_ms -= len(frame.pcm) / BYTES_PER_MS
        if self.recorder.hear(frame.pcm, frame.speech, now):
            self.on_voice(now)


def _ignore(now: float) -> None:
    """Nobody asks."""
