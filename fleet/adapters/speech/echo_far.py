"""What the loudspeaker played before each frame of the microphone, as spectra, and how that may be shifted.

The timestamps of a device slip: it reports a packet too late or too early by some frames, for one frame or from then
on. So the number of a packet is taken as a hint: if the numbers jump a little, the device is taken to have played on
without a jump. `shift` corrects that.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

FRAME = 960
"""Samples of a frame: 60 ms at 16 kHz."""
BLOCKS = 6
"""Frames that an echo reaches back: its delay and the room's response, 300 ms together. The newest one of them is
played after the frame of the microphone, because a device may report a packet a frame too early."""
MOST_SLIP = 3
"""Frames by which a device's numbers may jump and be wrong; larger jumps are right."""
_KEPT_SOUNDS = 24
_KEPT_SPECTRA = 16

Samples = NDArray[np.float32]
Spectra = NDArray[np.complex64]
_SILENCE = np.zeros(FRAME, np.float32)


class FarSound:
    """The loudspeaker of one device; 0.2 MB."""

    def __init__(self) -> None:
        self._sounds: OrderedDict[int, Samples] = OrderedDict()
        self._spectra: OrderedDict[tuple[int, int], Spectra] = OrderedDict()
        self._heard = [0] * BLOCKS
        """Numbers of what was played before the last frames of the microphone, the newest first; 0 for nothing."""
        self._next = 0
        """Number of the packet that should be played next."""
        self._offset = 0

    @property
    def newest(self) -> int:
        """The greatest number of a sound that is known."""
        return next(reversed(self._sounds), 0)

    @property
    def silent(self) -> bool:
        """Whether no echo can be in the microphone."""
        return not any(self._heard)

    def add(self, number: int, sound: Samples) -> None:
        """Take the sound of a packet; numbers rise."""
        self._sounds[number] = sound
        if len(self._sounds) > _KEPT_SOUNDS:
            self._sounds.popitem(last=False)

    def step(self, number: int | None) -> None:
        """Go on to the next frame of the microphone.

        Args:
            number: Of the packet that the device says to have played; 0 if nothing, None if that is not known.
        """
        played = self._place(number)
        self._next = played + 1 if played else self._next + 1
        self._heard = [played, *self._heard[:-1]]

    def _place(self, number: int | None) -> int:
        if number is None:
            return self._next if self._heard[0] else 0
        if number == 0:
            return 0
        jump = number + self._offset - self._next
        if abs(jump) > MOST_SLIP or self.silent:
            self._offset, jump = 0, 0
            return number
        self._offset -= jump
        if abs(self._offset) > MOST_SLIP:
            self._offset = 0
        return number + self._offset

    def shift(self, frames: int) -> None:
        """Correct what was played by so many frames, from some frames ago on."""
        self._offset += frames
        self._next += frames
        self._heard = [number and number + frames for number in self._heard]

    def spectra(self, frames: int = 0) -> Spectra:
        """Return the spectra of what was played, the newest first, one row for each block; each is of two frames.

        Args:
            frames: As if it was shifted so.
        """
        numbers = [number and number + frames for number in self._heard]
        following = [numbers[0] and numbers[0] + 1, *numbers]
        return np.stack([self._spectrum(following[at + 1], following[at]) for at in range(BLOCKS)])

    def _spectrum(self, first: int, second: int) -> Spectra:
        known = self._spectra.get((first, second))
        if known is not None:
            return known
        both = np.concatenate((self._sounds.get(first, _SILENCE), self._sounds.get(second, _SILENCE)))
        found = np.fft.rfft(both).astype(np.complex64)
        if not second or second in self._sounds:
            self._spectra[first, second] = found
            if len(self._spectra) > _KEPT_SPECTRA:
                self._spectra.popitem(last=False)
        return found
