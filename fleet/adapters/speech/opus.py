"""Opus packets to and from PCM: a thin binding to the libopus in a wheel.

Every call into libopus releases the GIL, so codecs may run in threads; one object serves one thread at a time. Python
owns the memory of the state, so objects need no `close`. PCM is 16-bit little-endian mono.
"""

import ctypes
import importlib.util
from functools import cache
from pathlib import Path
from typing import Literal

from fleet.ground.errors import FleetError

SAMPLE_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
"""Sample rates of the PCM, in Hz."""
FRAME_MS = (5, 10, 20, 40, 60, 80, 100, 120)
"""Lengths of packets in whole milliseconds."""
MAX_FRAME_MS = 120
MIN_PACKET = 8
"""Firmware up to 2.3.0 drops datagrams of less than 24 bytes, 16 of which are the header."""
MAX_PACKET = 1_184
"""With the header a datagram of 1,200 bytes, which every network path carries without fragmentation."""

_APPLICATIONS = {"voip": 2048, "audio": 2049}
_SET_BITRATE = 4002
_SET_VBR = 4006
_SET_COMPLEXITY = 4010
_SET_DTX = 4016
_SET_PREDICTION_DISABLED = 4042
_RESET_STATE = 4028
_SAMPLE_BYTES = 2


Application = Literal["voip", "audio"]
"""The optimisation goal of the encoder: intelligible speech, or sound close to the original."""


class OpusError(FleetError):
    """An invalid Opus packet, PCM of the wrong length, or settings that Opus does not have."""


class Decoder:
    """One stream's decoder.

    Args:
        sample_rate: Of the PCM in Hz, one of `SAMPLE_RATES`; it need not be the rate of the sender.

    Raises:
        OpusError: The rate is not one of Opus, or libopus is missing.
    """

    def __init__(self, sample_rate: int) -> None:
        _check_rate(sample_rate)
        lib = _library()
        self._state = ctypes.create_string_buffer(lib.opus_decoder_get_size(1))
        _check(lib.opus_decoder_init(self._state, sample_rate, 1))
        self._decode = lib.opus_decode
        self._control = lib.opus_decoder_ctl
        self._rate = sample_rate
        self._capacity = sample_rate * MAX_FRAME_MS // 1000
        self._pcm = ctypes.create_string_buffer(self._capacity * _SAMPLE_BYTES)
        self._view = memoryview(self._pcm)

    def decode(self, packet: bytes) -> bytes:
        """Return the PCM of one packet, at most 120 ms.

        Raises:
            OpusError: The packet is empty or damaged; the decoder can decode the next one.
        """
        if not packet:
            raise OpusError("opus: empty packet")
        count = self._decode(self._state, packet, len(packet), self._pcm, self._capacity, 0)
        if count < 0:
            raise OpusError(_reason(count))
        return self._view[: count * _SAMPLE_BYTES].tobytes()

    def conceal(self, frame_ms: int) -> bytes:
        """Return PCM that replaces a lost packet of `frame_ms` milliseconds (packet loss concealment)."""
        _check_frame(frame_ms)
        count = _check(self._decode(self._state, None, 0, self._pcm, self._rate * frame_ms // 1000, 0))
        return self._view[: count * _SAMPLE_BYTES].tobytes()

    def reset(self) -> None:
        """Reset the state; the next packet begins a new stream."""
        _check(self._control(self._state, _RESET_STATE))


class Encoder:
    """One stream's encoder, for voices and sounds: variable bitrate, a packet for every frame, also for silence.

    The first packet does not depend on earlier ones. So a stream may follow any other in a decoder without a click and
    without losing its beginning. With discontinuous transmission (`dtx`), which devices use, silence becomes packets of
    one or two bytes after the first 200 ms, refreshed every 400 ms, and no packet is padded.

    Args:
        sample_rate: Of the PCM, in Hz, one of `SAMPLE_RATES`.
        frame_ms: Length of a packet in milliseconds, one of `FRAME_MS`.
        bitrate: In bits a second; -1000 lets Opus choose.
        complexity: 0 (cheapest) to 10 (best).
        dtx: Whether to use discontinuous transmission.
        application: The optimisation goal.

    Raises:
        OpusError: A setting is out of range, or libopus is missing.
    """

    def __init__(
        self,
        sample_rate: int,
        frame_ms: int,
        bitrate: int = 24_000,
        complexity: int = 5,
        *,
        dtx: bool = False,
        application: Application = "audio",
    ) -> None:
        _check_rate(sample_rate)
        _check_frame(frame_ms)
        self.frame_bytes = sample_rate * frame_ms // 1000 * _SAMPLE_BYTES
        lib = _library()
        self._state = ctypes.create_string_buffer(lib.opus_encoder_get_size(1))
        self._encode = lib.opus_encode
        self._pad = lib.opus_packet_pad
        self._control = lib.opus_encoder_ctl
        _check(lib.opus_encoder_init(self._state, sample_rate, 1, _APPLICATIONS[application]))
        settings = {_SET_BITRATE: bitrate, _SET_VBR: 1, _SET_COMPLEXITY: complexity, _SET_DTX: int(dtx)}
        for request, value in settings.items():
            self._set(request, value)
        self._least = 1 if dtx else MIN_PACKET
        self._first = False
        self._begin()
        self._packet = ctypes.create_string_buffer(MAX_PACKET)
        self._view = memoryview(self._packet)

    def encode(self, pcm: bytes) -> bytes:
        """Return the packet of one frame: `MIN_PACKET` (1 with `dtx`) to `MAX_PACKET` bytes.

        Raises:
            OpusError: `pcm` is not `frame_bytes` long.
        """
        if len(pcm) != self.frame_bytes:
            raise OpusError(f"opus: frame of {len(pcm)} bytes instead of {self.frame_bytes}")
        size = self._encode(self._state, pcm, self.frame_bytes // _SAMPLE_BYTES, self._packet, MAX_PACKET)
        if size < self._least:
            _check(size)
            _check(self._pad(self._packet, size, self._least))
            size = self._least
        if self._first:
            self._first = False
            self._set(_SET_PREDICTION_DISABLED, 0)
        return self._view[:size].tobytes()

    def reset(self) -> None:
        """Reset the state; the next frame begins a new stream with the same settings."""
        _check(self._control(self._state, _RESET_STATE))
        self._begin()

    def _begin(self) -> None:
        # Opus codes energies as differences to the previous packet. The device's decoder keeps the energies of the
        # previous sentence, a new encoder does not know them: with prediction, a sentence would begin 2-4 dB too loud
        # or too soft.
        self._first = True
        self._set(_SET_PREDICTION_DISABLED, 1)

    def _set(self, request: int, value: int) -> None:
        _check(self._control(self._state, request, ctypes.c_int32(value)))


@cache
def silence(sample_rate: int, frame_ms: int) -> bytes:
    """Return a packet of digital silence, always the same one; it may stand anywhere in a stream.

    Raises:
        OpusError: A setting is out of range, or libopus is missing.
    """
    encoder = Encoder(sample_rate, frame_ms)
    return encoder.encode(bytes(encoder.frame_bytes))


@cache
def _library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(_library_path()))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    lib.opus_strerror.argtypes, lib.opus_strerror.restype = [number], text
    lib.opus_decoder_init.argtypes = [pointer, ctypes.c_int32, number]
    lib.opus_encoder_init.argtypes = [pointer, ctypes.c_int32, number, number]
    lib.opus_decode.argtypes = [pointer, text, ctypes.c_int32, pointer, number, number]
    lib.opus_encode.argtypes = [pointer, text, number, pointer, ctypes.c_int32]
    lib.opus_packet_pad.argtypes = [pointer, ctypes.c_int32, ctypes.c_int32]
    # These two functions are variadic. With the fixed arguments declared, ctypes calls them correctly on platforms that
    # pass variadic arguments in another way.
    lib.opus_encoder_ctl.argtypes = lib.opus_decoder_ctl.argtypes = [pointer, number]
    return lib


def _library_path() -> Path:
    found = importlib.util.find_spec("opuslib_next")
    if found and found.origin:
        # The package itself is not imported: it converts samples with `array`, which costs twice as much.
        for library in sorted((Path(found.origin).parent / "_native").glob("libopus.*")):
            return library
    raise OpusError("opus: libopus is missing; install opuslib-next-bundled")


def _check_rate(sample_rate: int) -> None:
    if sample_rate not in SAMPLE_RATES:
        raise OpusError(f"opus: sample rate {sample_rate} Hz is unknown")


def _check_frame(frame_ms: int) -> None:
    if frame_ms not in FRAME_MS:
        raise OpusError(f"opus: frames of {frame_ms} ms are unknown")


def _check(result: int) -> int:
    if result < 0:
        raise OpusError(_reason(result))
    return result


def _reason(code: int) -> str:
    return f"opus: {_library().opus_strerror(code).decode()}"
