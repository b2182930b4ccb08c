import numpy as np
import pytest

from fleet.adapters.speech.loudness import MOST_GAIN, TARGET, Leveller, VoiceLevel, VoiceLevels

RATE = 24_000
PIECE = RATE * 6 // 10 * 2


def speech(level: float, seconds: float = 3.0) -> bytes:
    """Return a tone of this RMS with pauses of silence, half of the time."""
    at = np.arange(int(seconds * RATE)) / RATE
    return ((at % 0.4 < 0.2) * np.sin(2 * np.pi * 220 * at) * level * 2**0.5 * 32767).astype("<i2").tobytes()


def process(leveller: Leveller, pcm: bytes) -> np.ndarray:
    pieces = [leveller.process(pcm[at : at + PIECE]) for at in range(0, len(pcm), PIECE)]
    return np.frombuffer(b"".join(pieces), "<i2") / 32768


def rms(samples: np.ndarray) -> float:
    """Return the RMS of what is no silence."""
    frames = samples[: len(samples) // 480 * 480].reshape(-1, 480)
    return float(np.sqrt(np.mean(frames[np.abs(frames).max(axis=1) > 0.01] ** 2)))


@pytest.mark.parametrize("level", [0.03, 0.07, 0.1, 0.25])
def test_voices_of_any_loudness_come_to_the_target_within_1_db(level: float) -> None:
    voice = VoiceLevel()
    process(Leveller(voice, RATE), speech(level))
    assert abs(20 * np.log10(rms(process(Leveller(voice, RATE), speech(level))) / TARGET)) < 1.0


def test_the_first_sentence_of_a_voice_is_at_the_target_too() -> None:
    assert rms(process(Leveller(VoiceLevel(), RATE), speech(0.04))) == pytest.approx(TARGET, rel=0.1)


def test_a_soft_sentence_of_a_voice_stays_softer_than_its_others() -> None:
    voice = VoiceLevel()
    process(Leveller(voice, RATE), speech(0.1, 20.0))
    assert rms(process(Leveller(voice, RATE), speech(0.05, 1.0))) < 0.7 * TARGET


def test_noise_and_silence_are_neither_measured_nor_amplified_beyond_the_limit() -> None:
    voice = VoiceLevel()
    hiss = (np.random.default_rng(1).standard_normal(RATE) * 0.002 * 32767).astype("<i2").tobytes()
    assert Leveller(voice, RATE).process(hiss) == hiss
    process(Leveller(voice, RATE), speech(0.012))
    assert voice.gain == MOST_GAIN


def test_peaks_are_rounded_and_never_wrap() -> None:
    voice = VoiceLevel()
    process(Leveller(voice, RATE), speech(0.03))
    assert 0.85 < np.abs(process(Leveller(voice, RATE), speech(0.2, 0.1))).max() < 0.95
    assert np.abs(np.diff(process(Leveller(voice, RATE), speech(0.6, 0.1)))).max() < 0.5


def test_the_gain_of_a_first_sentence_comes_without_a_step() -> None:
    constant = (np.full(RATE, 0.3) * 32767).astype("<i2").tobytes()
    leveller = Leveller(VoiceLevel(), RATE)
    short = 2 * RATE // 10
    heard = [
        np.frombuffer(leveller.process(constant[at : at + short]), "<i2") / 32768 for at in range(0, 60_000, short)
    ]
    joined = np.concatenate(heard)
    assert joined[0] == pytest.approx(0.3, abs=0.001) and joined[-1] == pytest.approx(TARGET, abs=0.001)
    assert np.abs(np.diff(joined)).max() < 0.001


def test_half_a_sample_waits_for_its_rest() -> None:
    level = VoiceLevel()
    process(Leveller(level, RATE), speech(0.1))
    pcm, leveller = speech(0.1, 0.3), Leveller(level, RATE)
    cut = b"".join(leveller.process(piece) for piece in (pcm[:1001], pcm[1001:4000], pcm[4000:]))
    assert len(cut) == len(pcm)
    assert np.corrcoef(np.frombuffer(cut, "<i2"), np.frombuffer(pcm, "<i2"))[0, 1] > 0.999


def test_more_voices_than_are_kept_share_one_level() -> None:
    levels = VoiceLevels()
    assert levels.find("en") is levels.find("en") is not levels.find("zh")
    many = {id(levels.find(str(number))) for number in range(200)}
    assert len(many) <= 33
