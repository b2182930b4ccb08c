import numpy as np

from fleet.adapters.speech.echo_far import FRAME
from fleet.adapters.speech.echo_rest import EchoRest

FRAMES = 100


def noise(level: float, frames: int = FRAMES) -> np.ndarray:
    return (np.random.default_rng(int(level * 1e4)).standard_normal((frames, FRAME)) * level).astype(np.float32)


def learned() -> EchoRest:
    """Return the rest of an echo of -20 dBFS that a filter leaves 12 dB below it."""
    rest = EchoRest()
    for left, echo in zip(noise(0.025), noise(0.1), strict=True):
        rest.remove(left, echo, learning=True, reliable=False)
    return rest


def test_what_is_usual_is_nobody_and_removed() -> None:
    rest = learned()
    for left, echo in zip(noise(0.025), noise(0.1), strict=True):
        out, somebody = rest.remove(left, echo, learning=False, reliable=True)
        assert not somebody
    assert np.std(out) < 0.6 * np.std(left)


def test_what_is_much_more_is_somebody_is_kept_and_does_not_become_usual() -> None:
    rest = learned()
    said, kept = noise(0.08), []
    for left, echo, user in zip(noise(0.025), noise(0.1), said, strict=True):
        out, somebody = rest.remove(left + user, echo, learning=False, reliable=True)
        kept.append(out)
        assert somebody
    late = np.roll(np.concatenate(kept), -320)
    assert np.corrcoef(late, said.ravel())[0, 1] > 0.8


def test_nobody_is_found_by_a_wrong_prediction_or_in_a_whisper() -> None:
    rest = learned()
    loud, echo = noise(0.1, 1)[0], noise(0.1, 1)[0]
    assert not rest.remove(loud, echo, learning=False, reliable=False)[1]
    assert not rest.remove(noise(0.003, 1)[0], np.zeros(FRAME, np.float32), learning=False, reliable=True)[1]


def test_without_an_echo_audio_passes_20_ms_late() -> None:
    rest, audio = learned(), noise(0.1)
    silence = np.zeros(FRAME, np.float32)
    passed = np.concatenate([rest.remove(frame, silence, learning=False, reliable=True)[0] for frame in audio])
    assert np.allclose(passed[FRAME:][320:], audio.ravel()[FRAME:-320], atol=2e-3)
