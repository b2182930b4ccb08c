"""Echo cancellation on the server: AEC3 of the package livekit, and Speex' canceller of the package pyaec.

Neither alone is enough. AEC3 removes all echo, but also much of a user who speaks at the same time. Speex leaves some
echo and all of the user. So Speex' output is used, and counts as speech only while AEC3 lets sound through (ADR 39).
Both packages are the extra `aec`; both libraries release the GIL.
"""

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from fleet.core.ports import ASR_RATE, EchoCanceller
from fleet.ground.errors import ConfigError, install_hint

_AEC3_SAMPLES = ASR_RATE // 100
"""AEC3 works on 10 ms."""
_SPEEX_SAMPLES = ASR_RATE // 50
_SPEEX_TAIL = ASR_RATE // 4
"""Samples of the echo's path: its delay and the room's response, 250 ms together."""
_LEARNING_FRAMES = 40
"""Frames that the device must have played before anything is heard over them: Speex needs 2 s to learn the room."""
_HELD_FRAMES = 3
"""Frames of 60 ms for which a sound that AEC3 let through counts. With 10, answers interrupted themselves at +7 dB."""
_LEAST_POWER = 10**4.4
_LEAST_SHARE = 10**-1.5
"""Power of AEC3's output, alone and as a share of the microphone's, from which it is somebody. Measured: while only the
echo was heard, 98 % of the frames of AEC3 were 20 dB below both or more."""


class PairedCanceller:
    """The two cancellers of one stream; for one thread at a time.

    Args:
        livekit: The package's module `rtc`.
        speex: The package's library.
    """

    def __init__(self, livekit: Any, speex: Any) -> None:
        self._frame = livekit.AudioFrame
        self._aec3 = livekit.apm.AudioProcessingModule(echo_cancellation=True, high_pass_filter=True)
        self._speex = speex
        self._state = speex.AecNew(_SPEEX_SAMPLES, _SPEEX_TAIL, ASR_RATE, True)
        self._learning = _LEARNING_FRAMES
        self._held = 0

    def __del__(self) -> None:
        self._speex.AecDestroy(self._state)

    def process(self, near: bytes, far: bytes) -> tuple[bytes, bool]:
        """See `fleet.core.ports.EchoCanceller`."""
        rest, words = self._cancel_all(near, far), self._cancel_softly(near, far)
        self._learning -= bool(self._learning) and any(far)
        least = max(_LEAST_POWER, _LEAST_SHARE * _power(near))
        self._held = _HELD_FRAMES if _power(rest) > least else max(0, self._held - 1)
        return words, bool(self._held) and not self._learning

    def _cancel_all(self, near: bytes, far: bytes) -> bytes:
        out = bytearray()
        size = 2 * _AEC3_SAMPLES
        for at in range(0, len(near), size):
            self._aec3.process_reverse_stream(self._frame(bytearray(far[at : at + size]), ASR_RATE, 1, _AEC3_SAMPLES))
            frame = self._frame(bytearray(near[at : at + size]), ASR_RATE, 1, _AEC3_SAMPLES)
            self._aec3.process_stream(frame)
            out += frame.data.cast("B")
        return bytes(out)

    def _cancel_softly(self, near: bytes, far: bytes) -> bytes:
        piece = ctypes.c_int16 * _SPEEX_SAMPLES
        out = bytearray(len(near))
        for at in range(0, len(near), 2 * _SPEEX_SAMPLES):
            self._speex.AecCancelEcho(
                self._state,
                piece.from_buffer_copy(near, at),
                piece.from_buffer_copy(far, at),
                piece.from_buffer(out, at),
                _SPEEX_SAMPLES,
            )
        return bytes(out)


def _power(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(np.float32)
    return float(np.mean(samples * samples))


def load_canceller() -> Callable[[], EchoCanceller]:
    """Return what makes a canceller for each stream. Blocks for a second.

    Raises:
        ConfigError: The extra `aec` is not installed.
    """
    try:
        livekit = import_module("livekit.rtc")
        speex = import_module("pyaec").lib
    except (ImportError, OSError, AttributeError) as error:
        raise ConfigError(f"FLEET_ECHO_CANCELLATION=on needs the extra aec: {install_hint('aec')}") from error
    return lambda: PairedCanceller(livekit, speex)
