import numpy as np

from fleet.adapters.speech.waveform import silence, to_pcm, trim_silence

TONE = (np.sin(np.arange(2400) / 5) * 0.3).astype(np.float32)


def test_silence_at_both_ends_is_cut_down_to_what_is_kept() -> None:
    quiet = np.zeros(4800, np.float32)
    trimmed = trim_silence(np.concatenate((quiet, TONE, quiet)), kept=480)
    assert len(trimmed) == 480 + 2400 + 480
    np.testing.assert_array_equal(trimmed[480:-480], TONE)


def test_audio_without_silence_stays_as_it_is() -> None:
    np.testing.assert_array_equal(trim_silence(TONE, kept=480), TONE)


def test_nothing_but_silence_is_nothing() -> None:
    assert len(trim_silence(np.zeros(4800, np.float32), kept=480)) == 0
    assert len(trim_silence(np.zeros(0, np.float32), kept=480)) == 0


def test_the_gain_is_applied() -> None:
    pcm = np.frombuffer(to_pcm(TONE, 2.0), "<i2")
    assert 0.59 < pcm.max() / 32767 < 0.61


def test_too_loud_audio_is_made_quieter_as_a_whole() -> None:
    pcm = np.frombuffer(to_pcm(TONE, 9.0), "<i2")
    assert 0.94 < pcm.max() / 32767 < 0.96
    np.testing.assert_allclose(pcm / pcm.max(), TONE / TONE.max(), atol=1e-3)


def test_empty_audio_is_no_pcm() -> None:
    assert to_pcm(np.zeros(0, np.float32), 1.0) == b""


def test_silence_is_as_long_as_asked() -> None:
    assert silence(0.1, 24_000) == bytes(4800)
