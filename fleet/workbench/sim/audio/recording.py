"""Recordings that the user of a simulated device says."""

import wave
from pathlib import Path

import numpy as np

from fleet.adapters.speech.pcm import SAMPLE_BYTES, resample
from fleet.ground.errors import ConfigError
from fleet.workbench.sim.audio.encoder import SAMPLE_RATE


def read_recording(path: Path) -> bytes:
    """Return a WAV file's sound as 16-bit PCM at 16 kHz, mixed to one channel.

    Raises:
        ConfigError: The file cannot be read or is no 16-bit PCM WAV.
    """
    try:
        with wave.open(str(path), "rb") as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            raw = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise ConfigError(f"{path}: {str(error) or 'cut off'}") from error
    if width != SAMPLE_BYTES:
        raise ConfigError(f"{path}: {width * 8}-bit samples; 16-bit PCM is needed")
    whole = len(raw) // (SAMPLE_BYTES * channels) * SAMPLE_BYTES * channels
    mono = np.frombuffer(raw[:whole], "<i2").reshape(-1, channels).mean(axis=1).round().astype("<i2")
    return resample(mono.tobytes(), rate, SAMPLE_RATE)
