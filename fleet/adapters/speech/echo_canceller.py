"""Echo cancellation of one stream: predict the echo, remove what is expected of it, and say whether somebody is there.

ADR 39 has the measurements.
"""

import numpy as np

from fleet.adapters.speech.echo_far import FRAME, Samples
from fleet.adapters.speech.echo_filter import EchoFilter
from fleet.adapters.speech.echo_rest import EchoRest

_HELD_FRAMES = 3
"""Frames of 60 ms for which somebody who was heard counts as there."""
_LAST, _ENOUGH = 0b111, 2
"""Somebody is heard when two of the last three frames hold him: one alone is mostly the codec's."""


class EchoCanceller:
    """For one thread at a time; 0.4 MB."""

    def __init__(self) -> None:
        self._filter = EchoFilter()
        self._rest = EchoRest()
        self._held = self._recent = 0
        self._gap = False

    @property
    def newest(self) -> int:
        """The greatest number of a packet whose sound was given."""
        return self._filter.far.newest

    def add(self, number: int, sound: Samples) -> None:
        """Take the sound of a packet that is or will be played, `FRAME` samples; numbers rise."""
        self._filter.far.add(number, sound)

    def process(self, near: bytes, number: int | None) -> tuple[bytes, bool]:
        """Return a frame of the microphone without the echo, and whether anything but the rest of the echo is in it.

        Args:
            near: `FRAME` samples at 16 kHz, s16le.
            number: Of the packet that the device says to have played; 0 if nothing, None if this frame was lost.
        """
        self._filter.far.step(number)
        after_gap, self._gap = self._gap, number is None
        samples = np.frombuffer(near, "<i2").astype(np.float32) / np.float32(32768)
        # A lost frame teaches nothing, and the decoder needs one more frame to find its way back.
        echo = np.zeros(FRAME, np.float32) if self._gap else self._filter.predict(samples)
        sure = not self._gap and not after_gap
        learning = sure and self._filter.learning
        reliable = sure and self._filter.reliable
        words, somebody = self._rest.remove(samples - echo, echo, learning=learning, reliable=reliable)
        self._recent = (self._recent << 1 | (somebody and not self._filter.doubtful)) & _LAST
        self._held = _HELD_FRAMES if self._recent.bit_count() >= _ENOUGH else max(0, self._held - 1)
        pcm = (np.clip(words, -1, 1) * 32767).astype("<i2").tobytes()
        return pcm, self._held > 0 and not self._filter.learning
