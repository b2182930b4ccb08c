import io
import wave
from pathlib import Path

import numpy as np
import pytest

from fleet.adapters.speech.pcm import write_wav
from fleet.ground.errors import ConfigError
from fleet.workbench.sim.audio.recording import read_recording


def test_a_recording_at_the_devices_rate_comes_back_as_it_was(tmp_path: Path) -> None:
    pcm = np.arange(-8000, 8000, 5, dtype="<i2").tobytes()
    (tmp_path / "a.wav").write_bytes(write_wav(pcm, 16_000))
    assert read_recording(tmp_path / "a.wav") == pcm


def test_stereo_at_another_rate_is_mixed_and_converted(tmp_path: Path) -> None:
    at = np.arange(48_000) / 48_000
    left = (np.sin(2 * np.pi * 440 * at) * 20_000).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(np.stack([left, left], axis=1).tobytes())
    (tmp_path / "b.wav").write_bytes(out.getvalue())
    samples = np.frombuffer(read_recording(tmp_path / "b.wav"), "<i2")
    assert len(samples) == 16_000
    assert 19_000 < np.abs(samples).max() < 21_000


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no wav at all"])
def test_what_is_no_wav_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.wav").write_bytes(content)
    with pytest.raises(ConfigError, match=r"c\.wav"):
        read_recording(tmp_path / "c.wav")
