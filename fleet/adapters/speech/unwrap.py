"""Find the samples in an answer of a speech endpoint: some endpoints send WAV files when PCM is requested."""

from fleet.adapters.speech.pcm import Resampler, WavError, read_header

_RIFF = b"RIFF"
_OTHERS = {b"OggS": "Ogg", b"fLaC": "FLAC", b"ID3": "MP3"}
_MPEG = frozenset({"audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp"})
"""Media types whose frames begin with eleven ones. A quiet sample of PCM may begin so too, so the bytes alone do not
prove MPEG; and some endpoints send PCM under these types, so the type alone does not prove it either."""
_ENOUGH = 4
"""Bytes that are needed to recognise the format."""


class Unwrapper:
    """Reads a body of bare PCM or a WAV file, in pieces of any length, and returns PCM at one sample rate.

    Args:
        sample_rate: Of bare PCM, and of the returned PCM, in Hz.
        kind: The body's media type.
    """

    def __init__(self, sample_rate: int, kind: str) -> None:
        text = kind == "application/json" or kind.startswith("text/")
        self.fault = f"sent {kind} instead of audio" if text else ""
        """The fault of the body; no samples are returned after a fault."""
        self._sample_rate = sample_rate
        self._kind = kind
        self._held = b""
        self._resampler: Resampler | None = None
        self._left: int | None = None

    def feed(self, data: bytes) -> bytes:
        """Return the samples that these bytes complete."""
        if self.fault:
            return b""
        if self._resampler is None:
            self._held += data
            data = self._begin()
        if self._left is not None:
            # Some servers write other chunks of the WAV format after the samples.
            data = data[: self._left]
            self._left -= len(data)
        return self._resampler.feed(data) if self._resampler else b""

    def end(self) -> bytes:
        """Return the last samples."""
        if self._resampler is None:
            if self._held.startswith(_RIFF) and not self.fault:
                self.fault = "sent the beginning of a WAV file"
            return b""
        return self._resampler.flush()

    def _begin(self) -> bytes:
        """Return the first samples once the format is known."""
        held = self._held
        if len(held) < _ENOUGH or self._is_foreign():
            return b""
        rate, offset = self._sample_rate, 0
        if held.startswith(_RIFF):
            try:
                head = read_header(held)
            except WavError as error:
                self.fault = f"sent {error}"
                return b""
            if head is None:
                return b""
            rate, offset, self._left = head.sample_rate, head.offset, head.size
        self._resampler = Resampler(rate, self._sample_rate)
        self._held = b""
        return held[offset:]

    def _is_foreign(self) -> bool:
        known = next((name for magic, name in _OTHERS.items() if self._held.startswith(magic)), "")
        if self._kind in _MPEG and self._held[0] == 0xFF and self._held[1] >= 0xE0:
            known = self._kind
        self.fault = f"sent {known} instead of PCM" if known else ""
        return bool(known)
