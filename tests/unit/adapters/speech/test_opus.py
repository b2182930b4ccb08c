import gc
import threading
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.opus import (
    FRAME_MS,
    MAX_PACKET,
    MIN_PACKET,
    SAMPLE_RATES,
    Decoder,
    Encoder,
    OpusError,
    silence,
)


def tone(rate: int, ms: int, hz: float = 440.0, level: float = 0.5) -> bytes:
    time = np.arange(rate * ms // 1000) / rate
    return (np.sin(2 * np.pi * hz * time) * level * 32767).astype("<i2").tobytes()


def frames(pcm: bytes, size: int) -> list[bytes]:
    return [pcm[at : at + size] for at in range(0, len(pcm) - size + 1, size)]


def loudness(pcm: bytes) -> float:
    return float(np.sqrt(np.mean(np.frombuffer(pcm, "<i2").astype(float) ** 2)))


def peak_hz(pcm: bytes, rate: int) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return float(np.argmax(np.abs(np.fft.rfft(samples * np.hanning(len(samples))))) * rate / len(samples))


@pytest.mark.parametrize("rate", SAMPLE_RATES)
@pytest.mark.parametrize("frame_ms", FRAME_MS)
def test_a_tone_survives_every_rate_and_frame_length(rate: int, frame_ms: int) -> None:
    encoder, decoder = Encoder(rate, frame_ms), Decoder(rate)
    packets = [encoder.encode(frame) for frame in frames(tone(rate, 1200), encoder.frame_bytes)]
    heard = b"".join(decoder.decode(packet) for packet in packets)
    assert len(heard) == rate * 1200 // 1000 * 2
    assert peak_hz(heard[rate:], rate) == pytest.approx(440, abs=5)


def test_a_packet_decodes_to_another_rate_than_it_was_encoded_from() -> None:
    assert len(Decoder(16_000).decode(Encoder(24_000, 60).encode(tone(24_000, 60)))) == 960 * 2


def test_packets_of_silence_are_long_enough_for_old_firmware() -> None:
    encoder, decoder = Encoder(16_000, 5, bitrate=6_000), Decoder(16_000)
    for _ in range(20):
        packet = encoder.encode(bytes(encoder.frame_bytes))
        assert MIN_PACKET <= len(packet) <= MAX_PACKET
        assert len(decoder.decode(packet)) == encoder.frame_bytes


def test_a_short_packet_is_padded_and_still_decodes_to_its_frame() -> None:
    packet = Encoder(8_000, 10, bitrate=500).encode(bytes(160))
    assert len(packet) == MIN_PACKET
    assert len(Decoder(8_000).decode(packet)) == 160


def test_packets_never_outgrow_a_datagram() -> None:
    encoder = Encoder(48_000, 120, bitrate=510_000)
    noise = np.random.default_rng(1).integers(-32768, 32767, encoder.frame_bytes // 2).astype("<i2").tobytes()
    assert len(encoder.encode(noise)) <= MAX_PACKET


def test_the_first_packet_sounds_the_same_after_any_other_stream() -> None:
    encoder = Encoder(24_000, 60)
    loud = frames(tone(24_000, 600, 200, 0.9), encoder.frame_bytes)
    fresh, used, quiet = Decoder(24_000), Decoder(24_000), Decoder(24_000)
    for frame in loud:
        used.decode(encoder.encode(frame))
    quiet.decode(silence(24_000, 60))
    encoder.reset()
    packet = encoder.encode(tone(24_000, 60, 1_000, 0.3))
    wanted = loudness(fresh.decode(packet)[1440:])
    assert loudness(quiet.decode(packet)[1440:]) == pytest.approx(wanted, rel=0.05)
    assert loudness(used.decode(packet)[1440:]) == pytest.approx(wanted, rel=0.05)


def test_a_reset_encoder_repeats_its_packets() -> None:
    encoder = Encoder(24_000, 60)
    pcm = frames(tone(24_000, 300), encoder.frame_bytes)
    first = [encoder.encode(frame) for frame in pcm]
    encoder.reset()
    assert [encoder.encode(frame) for frame in pcm] == first


def test_a_reset_decoder_repeats_its_audio() -> None:
    decoder, packet = Decoder(16_000), Encoder(16_000, 60).encode(tone(16_000, 60))
    first = decoder.decode(packet)
    decoder.reset()
    assert decoder.decode(packet) == first


def test_a_discontinuous_packet_of_one_byte_keeps_time() -> None:
    decoder = Decoder(16_000)
    assert len(decoder.decode(bytes([11 << 3]))) == 960 * 2


def test_a_lost_packet_is_concealed_for_its_length() -> None:
    encoder, decoder = Encoder(16_000, 60), Decoder(16_000)
    for frame in frames(tone(16_000, 300), encoder.frame_bytes):
        decoder.decode(encoder.encode(frame))
    stand_in = decoder.conceal(60)
    assert len(stand_in) == 960 * 2
    assert loudness(stand_in) > 100


def test_silence_is_silent() -> None:
    assert loudness(Decoder(24_000).decode(silence(24_000, 60))) < 2
    assert len(silence(24_000, 60)) >= MIN_PACKET


@given(st.binary(max_size=400))
def test_garbage_is_audio_or_an_error_but_nothing_else(packet: bytes) -> None:
    try:
        pcm = Decoder(16_000).decode(packet)
    except OpusError:
        return
    assert 0 < len(pcm) <= 16_000 * 120 // 1000 * 2


def test_a_decoder_goes_on_after_garbage() -> None:
    decoder, packet = Decoder(16_000), Encoder(16_000, 60).encode(tone(16_000, 60))
    with pytest.raises(OpusError, match="corrupted"):
        decoder.decode(b"\xff\xff\xff")
    assert len(decoder.decode(packet)) == 960 * 2


def test_an_empty_packet_is_refused() -> None:
    with pytest.raises(OpusError, match="empty"):
        Decoder(16_000).decode(b"")


def test_pcm_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(OpusError, match="1918 bytes instead of 1920"):
        Encoder(16_000, 60).encode(bytes(1918))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Decoder(44_100),
        lambda: Encoder(44_100, 60),
        lambda: Encoder(24_000, 30),
        lambda: Encoder(24_000, 60, complexity=11),
        lambda: Encoder(24_000, 60, bitrate=0),
        lambda: Decoder(16_000).conceal(7),
    ],
)
def test_unknown_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OpusError):
        make()


def test_codecs_in_threads_do_not_disturb_each_other() -> None:
    pcm = frames(tone(24_000, 1200), 2880)
    single = Encoder(24_000, 60)
    wanted = [single.encode(frame) for frame in pcm]
    got: list[list[bytes]] = []

    def work() -> None:
        encoder = Encoder(24_000, 60)
        got.append([encoder.encode(frame) for frame in pcm])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert got == [wanted] * 4


def test_codecs_leave_no_memory_behind() -> None:
    Encoder(24_000, 60), Decoder(24_000)
    tracemalloc.start()
    try:
        for _ in range(20):
            Decoder(24_000).decode(Encoder(24_000, 60).encode(bytes(2880)))
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak > 30_000
    assert held < 10_000


def test_silence_is_left_out_when_asked_for_and_padded_otherwise() -> None:
    sparing = Encoder(16_000, 60, bitrate=-1000, complexity=0, dtx=True)
    plain = Encoder(16_000, 60, bitrate=-1000, complexity=0)
    sizes = [len(sparing.encode(bytes(1920))) for _ in range(30)]
    assert sizes.count(1) >= 22
    assert all(size > 1 for size in sizes[:3])
    assert all(len(plain.encode(bytes(1920))) >= MIN_PACKET for _ in range(30))


def test_an_encoder_for_speech_decodes_like_any_other() -> None:
    encoder, decoder = Encoder(16_000, 20, application="voip"), Decoder(16_000)
    sound = b"".join(decoder.decode(encoder.encode(frame)) for frame in frames(tone(16_000, 300), encoder.frame_bytes))
    assert len(sound) == 300 * 32
    assert loudness(sound) > 100
