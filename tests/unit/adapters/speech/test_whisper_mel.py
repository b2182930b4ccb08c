import numpy as np
import pytest

from fleet.adapters.speech.whisper_mel import log_mel, window_seconds


@pytest.mark.parametrize(
    ("duration", "shortest", "window"),
    [
        *((0.0, 10.0, 10.0), (3.0, 10.0, 10.0), (8.0, 10.0, 10.0), (9.0, 10.0, 11.0)),
        *((28.5, 10.0, 30.0), (60.0, 10.0, 30.0), (3.0, 8.0, 8.0), (7.0, 8.0, 9.0)),
    ],
)
def test_the_window_leaves_room_after_the_utterance(duration: float, shortest: float, window: float) -> None:
    assert window_seconds(duration, shortest) == window


@pytest.mark.parametrize(("seconds", "frames"), [(0.0, 1000), (3, 1000), (12, 1400), (40, 3000)])
def test_the_spectrogram_has_a_hundred_frames_a_second(seconds: float, frames: int) -> None:
    mel = log_mel(bytes(int(seconds * 32_000)), 80)
    assert (mel.shape, mel.dtype) == ((1, 80, frames), np.float32)
    assert log_mel(bytes(32_000), 80, 8.0).shape == (1, 80, 800)


def test_a_tone_is_where_the_mel_scale_puts_it() -> None:
    def loudest(hertz: float) -> int:
        samples = np.sin(np.arange(16_000) / 16_000 * 2 * np.pi * hertz) * 8000
        return int(log_mel(samples.astype("<i2").tobytes(), 80)[0, :, 50].argmax())

    # Slaney's scale: 66.7 Hz a mel up to 1 kHz and 45.25 mel at 8 kHz, so bands lie 37.2 Hz apart: 480 Hz is the 13th.
    assert loudest(480) == 12
    assert loudest(300) < loudest(1000) < loudest(4000)


def test_levels_are_scaled_and_limited_to_eight_tens() -> None:
    samples = np.random.default_rng(1).normal(0, 3000, 16_000).astype("<i2")
    mel = log_mel(samples.tobytes(), 80)
    assert mel.max() - mel.min() == pytest.approx(2.0, abs=1e-5)


def test_full_scale_is_one() -> None:
    # At its bin a full-scale sine has (400 / 4)^2 = 1e4; the filter weighs it with almost 2 / 74.5 Hz: 10^2.4.
    samples = np.sin(np.arange(16_000) / 16_000 * 2 * np.pi * 480) * 32_767
    assert log_mel(samples.astype("<i2").tobytes(), 80).max() == pytest.approx((2.4 + 4) / 4, abs=0.05)


def test_an_odd_byte_at_the_end_is_left_out() -> None:
    assert log_mel(b"\x01", 80).shape == (1, 80, 1000)
