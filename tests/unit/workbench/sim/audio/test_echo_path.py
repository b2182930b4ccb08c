import numpy as np

from fleet.workbench.sim.audio.echo_path import EchoPath, Room
from fleet.workbench.sim.profiles.echo_setting import EchoSetting


def hear(setting: EchoSetting, samples: np.ndarray, size: int) -> np.ndarray:
    path = EchoPath(setting)
    return np.concatenate([path.hear(samples[at : at + size]) for at in range(0, len(samples), size)])


def speech() -> np.ndarray:
    return np.random.default_rng(2).standard_normal(48_000) * 0.1


def test_an_echo_of_0_db_is_as_loud_as_the_user_and_13_db_are_that_much_more() -> None:
    soft, loud = (np.sqrt(np.mean(hear(EchoSetting(level), speech(), 960)[8000:] ** 2)) for level in (0.0, 13.0))
    assert abs(20 * np.log10(soft / 0.05)) < 1.5
    assert abs(20 * np.log10(loud / soft) - 13) < 0.01


def test_the_echo_comes_after_the_delay_and_rings() -> None:
    click = np.zeros(16_000)
    click[0] = 0.1
    heard = np.abs(hear(EchoSetting(0.0, 90.0), click, 960))
    assert not heard[: 16 * 90 - 1].max() > 1e-9
    assert heard[16 * 90] == heard.max()
    assert heard[16 * 90 + 1600 :].max() > 1e-6


def test_the_echo_does_not_depend_on_the_length_of_the_frames() -> None:
    assert np.allclose(hear(EchoSetting(), speech(), 960), hear(EchoSetting(), speech(), 320))


def test_a_loud_loudspeaker_distorts() -> None:
    tone = np.sin(np.arange(16_000) * 2 * np.pi * 200 / 16_000)
    spectrum = np.abs(np.fft.rfft(hear(EchoSetting(), tone * 0.9, 960)[8000:]))
    assert spectrum[300] > 0.02 * spectrum[100]


def test_a_room_adds_the_echo_at_the_time_of_the_sound() -> None:
    room = Room(EchoSetting(0.0, 60.0))
    played = (speech()[:1440] * 32767).astype("<i2").tobytes()
    room.play(100.0, played, 24_000)
    user = b"\x05\x00" * 960
    frames = [np.frombuffer(room.mix(user, 100.06 + 0.06 * at), "<i2") - 5.0 for at in range(4)]
    loudness = [float(np.sqrt(np.mean(frame**2))) for frame in frames]
    assert loudness[0] < 1
    assert loudness[1] > 300
    assert loudness[1] > loudness[2] > 1.5 * loudness[3]


def test_without_an_echo_a_room_changes_nothing() -> None:
    room = Room(None)
    room.play(100.0, bytes(2880), 24_000)
    assert room.mix(b"\x05\x00" * 960, 100.06) == b"\x05\x00" * 960
