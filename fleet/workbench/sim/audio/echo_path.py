"""The way from a device's loudspeaker to its microphone: a small loudspeaker that distorts, a room, and the delay."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.pcm import resample
from fleet.workbench.sim.profiles.echo_setting import EchoSetting

RATE = 16_000
_MOST_PLAYED = 8
"""Packets that may reach into a captured frame, and a few more."""
_ROOM_SECONDS = 0.18
_DECAY_SECONDS = 0.05
_DRIVE = 2.5
"""How far the loudspeaker is driven into its limit: about a tenth of its power is distortion."""
_REFERENCE = 0.05
"""RMS of a user's speech at the microphone, full scale 1: level 0 dB is an echo that is as loud."""


class EchoPath:
    """What the microphone hears of the loudspeaker, as a stream."""

    def __init__(self, setting: EchoSetting) -> None:
        rng = np.random.default_rng(setting.seed)
        taps = int(_ROOM_SECONDS * RATE)
        room = rng.standard_normal(taps) * np.exp(-np.arange(taps) / (_DECAY_SECONDS * RATE)) * 0.3
        room[0] = 1.0
        delay = np.zeros(int(setting.delay_ms / 1000 * RATE))
        self._response = np.concatenate((delay, room / np.sqrt(np.sum(room**2))))
        self._spectra: dict[int, NDArray[np.complex128]] = {}
        """The response's transforms, by their size."""
        self._past = np.zeros(len(self._response) - 1)
        self._gain = _REFERENCE * 10 ** (setting.level_db / 20)

    def hear(self, played: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what arrives at the microphone while this is played; full scale is 1.

        Args:
            played: The next audio of the loudspeaker at 16 kHz, speech of -20 dBFS.
        """
        distorted = np.tanh(_DRIVE * played) / (_DRIVE * 0.1)
        stream = np.concatenate((self._past, distorted))
        self._past = stream[len(stream) - len(self._past) :]
        # A transform of a power of two is quick. What wraps around lies in the past, which is not returned.
        size = 1 << (len(stream) - 1).bit_length()
        if size not in self._spectra:
            self._spectra[size] = np.fft.rfft(self._response, size)
        whole = np.fft.irfft(np.fft.rfft(stream, size) * self._spectra[size], size)
        return whole[len(self._past) : len(stream)] * self._gain


class Room:
    """Adds to what a microphone captures the echo of what the loudspeaker plays, by the time of both.

    Args:
        setting: None for a device that does not hear itself.
    """

    def __init__(self, setting: EchoSetting | None) -> None:
        self._path = EchoPath(setting) if setting else None
        self._played: deque[tuple[int, NDArray[np.float64]]] = deque(maxlen=_MOST_PLAYED)

    def play(self, at: float, pcm: bytes, sample_rate: int) -> None:
        """Take a packet that sounds from `at` on."""
        if self._path:
            samples = np.frombuffer(resample(pcm, sample_rate, RATE), "<i2") / 32768
            self._played.append((round(at * RATE), samples))

    def mix(self, captured: bytes, until: float) -> bytes:
        """Return a frame, whose capture ends at `until`, with the echo in it."""
        if self._path is None:
            return captured
        size = len(captured) // 2
        begin = round(until * RATE) - size
        sound = np.zeros(size)
        for start, samples in self._played:
            first, last = max(start, begin), min(start + len(samples), begin + size)
            if first < last:
                sound[first - begin : last - begin] = samples[first - start : last - start]
        heard = np.frombuffer(captured, "<i2") + self._path.hear(sound) * 32767
        return np.clip(heard, -32768, 32767).astype("<i2").tobytes()
