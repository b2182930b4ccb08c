"""PCM in memory: lengths, WAV files and resampling. Samples are 16-bit little-endian mono."""

import struct
from dataclasses import dataclass

import numpy as np
import soxr

from fleet.ground.errors import FleetError

SAMPLE_BYTES = 2
MAX_HEADER = 65_536
"""Bytes of a WAV file within which its samples must begin."""

_PCM = 1
_EXTENSIBLE = 0xFFFE
_STREAMED = 0x7FFF_0000
"""A length of at least this, or 0, means that the writer did not know the length (a streamed file)."""


class WavError(FleetError):
    """The bytes are not a WAV file, or its samples are not 16-bit mono."""


@dataclass(frozen=True, slots=True)
class WavHead:
    """The header of a WAV file."""

    sample_rate: int
    offset: int
    """Bytes before the first sample."""
    size: int | None
    """Bytes of samples; None if the file does not say it."""


def duration(pcm: bytes, sample_rate: int) -> float:
    """Return the duration of PCM in seconds."""
    return len(pcm) / (sample_rate * SAMPLE_BYTES)


def size_of(milliseconds: float, sample_rate: int) -> int:
    """Return the bytes of PCM of this duration, rounded down to whole samples."""
    return int(sample_rate * milliseconds / 1000) * SAMPLE_BYTES


def write_wav(pcm: bytes, sample_rate: int) -> bytes:
    """Return a WAV file with these samples, without half a sample at the end."""
    size = len(pcm) // SAMPLE_BYTES * SAMPLE_BYTES
    layout = (16, _PCM, 1, sample_rate, sample_rate * SAMPLE_BYTES, SAMPLE_BYTES, SAMPLE_BYTES * 8)
    head = b"RIFF%sWAVEfmt %sdata%s" % (
        struct.pack("<I", 36 + size),
        struct.pack("<IHHIIHH", *layout),
        struct.pack("<I", size),
    )
    return head + pcm[:size]


def read_wav(data: bytes) -> tuple[bytes, int]:
    """Return the samples of a WAV file and their rate in Hz.

    Raises:
        WavError: The data is not a WAV file, its header is incomplete, or its samples are not 16-bit mono.
    """
    head = read_header(data)
    if head is None:
        raise WavError("wav: the header is cut off")
    samples = data[head.offset :][: head.size]
    return samples[: len(samples) // SAMPLE_BYTES * SAMPLE_BYTES], head.sample_rate


def read_header(data: bytes) -> WavHead | None:
    """Read the header at the beginning of a WAV file; return None if the header is still incomplete.

    Raises:
        WavError: The data is not a WAV file, has no samples, or they are not 16-bit mono.
    """
    # Compare only what has arrived: a stream that begins with `RI` may still become a WAV file.
    if data[:4] != b"RIFF"[: len(data)] or data[8:12] != b"WAVE"[: max(0, len(data) - 8)]:
        raise WavError("wav: no WAV file")
    at, rate = 12, 0
    while len(data) >= at + 8:
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"data":
            if not rate:
                raise WavError("wav: samples without a format")
            return WavHead(rate, at, size if 0 < size < _STREAMED else None)
        if name == b"fmt " and size >= 16 and len(data) >= at + 16:
            rate = _read_format(data, at)
        at += size + size % 2
    if at > MAX_HEADER:
        raise WavError("wav: no samples")
    return None


def _read_format(data: bytes, at: int) -> int:
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
    if kind not in (_PCM, _EXTENSIBLE) or channels != 1 or bits != SAMPLE_BYTES * 8 or not rate:
        raise WavError(f"wav: format {kind}, {channels} channels of {bits} bits instead of 16-bit mono")
    return int(rate)


class Resampler:
    """Resamples a stream of PCM.

    Args:
        from_rate: Of the input, in Hz.
        to_rate: Of the output, in Hz; equal rates pass the stream through.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        self._stream = None
        if from_rate != to_rate:
            self._stream = soxr.ResampleStream(from_rate, to_rate, 1, dtype="int16", quality="HQ")
        self._half = b""

    def feed(self, pcm: bytes) -> bytes:
        """Return the next output, up to 75 ms less than was fed; half a sample is kept until its rest arrives."""
        whole = self._take(pcm)
        return self._resample(whole, last=False) if whole else b""

    def flush(self) -> bytes:
        """Return the rest and begin a new stream; half a sample is dropped."""
        self._half = b""
        if self._stream is None:
            return b""
        rest = self._resample(b"", last=True)
        self._stream.clear()
        return rest

    def _take(self, pcm: bytes) -> bytes:
        pcm = self._half + pcm if self._half else pcm
        whole = len(pcm) // SAMPLE_BYTES * SAMPLE_BYTES
        self._half = pcm[whole:]
        return pcm[:whole]

    def _resample(self, pcm: bytes, *, last: bool) -> bytes:
        if self._stream is None:
            return pcm
        resampled: bytes = self._stream.resample_chunk(np.frombuffer(pcm, "<i2"), last=last).tobytes()
        return resampled


def resample(pcm: bytes, from_rate: int, to_rate: int) -> bytes:
    """Return PCM at another rate, of the same duration."""
    resampler = Resampler(from_rate, to_rate)
    return resampler.feed(pcm) + resampler.flush()
