"""Turn sentences into Opus packets for devices."""

import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from fleet.adapters.contained import closing
from fleet.adapters.speech.engines import Engine
from fleet.adapters.speech.loudness import Leveller, VoiceLevels
from fleet.adapters.speech.opus import Encoder
from fleet.adapters.speech.pcm import Resampler, size_of
from fleet.core.ports import USUAL_VOICE, Tts, VoiceOptions
from fleet.wire.messages import AudioFormat

LONGEST_KEPT = 40
"""Characters of a phrase whose packets are cached: short ones such as "One moment." are repeated, long ones rarely."""
ENCODINGS: Final = {"24k": (24_000, 5), "32k": (32_000, 0)}
"""Bits a second, and the complexity of the encoder: with both pairs speech has the same PESQ, and the second one takes
half the CPU time (docs/adr/0032-downlink-bitrate.md).
From complexity 7 on Opus chooses another codec for speech, which costs four times as much."""
_KEPT_BYTES = 4_000_000
_BATCH_MS = 600
"""Audio that is encoded in one piece of work, about 1.5 ms long, so that streams take turns."""
_THREADS = 2
_QUEUE = 1_000
"""Batches that may wait; a stream has one at a time."""
_ENCODE_SECONDS = 5.0
_LOOKAHEAD_US = 6_500
"""Delay of the Opus encoder: without this much silence at the end, the last part of the voice would be lost."""

_HAN = re.compile(r"[㐀-䶿一-鿿]")

Phrase = tuple[str, str, AudioFormat, str, VoiceOptions]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks a sentence: an engine, and one of its voices."""

    tts: Tts
    options: VoiceOptions = USUAL_VOICE
    engine: str = ""
    """Names the engine; empty for that of the settings."""


class Voice:
    """Synthesises with a `Tts` and encodes for devices; shared by all of them.

    Each sentence is a stream of its own, whose first packet does not depend on earlier ones. So sentences may be
    cached, repeated and joined.

    Args:
        tts: Makes the audio.
        bitrate: Of the packets, one of `ENCODINGS`.
        kept_bytes: Size of the cache of short phrases; the least recently used ones are removed first.
    """

    def __init__(self, tts: Tts, *, bitrate: Literal["24k", "32k"] = "32k", kept_bytes: int = _KEPT_BYTES) -> None:
        self.usual = Speaker(tts)
        """Speaks unless another one is asked for."""
        self._bitrate, self._complexity = ENCODINGS[bitrate]
        self._kept = PhraseCache(kept_bytes)
        self._levels = VoiceLevels()
        self._engine = Engine("opus", _THREADS, _QUEUE)

    def close(self) -> None:
        """End the encoding threads."""
        self._engine.close()

    async def packets(
        self, text: str, language: str, downlink: AudioFormat, speaker: Speaker | None = None
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the packets of a sentence as soon as there is audio for them; the last is filled with silence.

        They come in pieces of at most `_BATCH_MS`, a short phrase that was kept in one piece: a hand-over for each
        packet would cost more than the packet. Closing the iterator closes that of the `Tts`.

        Args:
            text: Cleaned for speech.
            language: ISO 639-1 code, or empty to detect it from the text.
            downlink: The format that the device plays.
            speaker: Who speaks; None for the usual one.

        Raises:
            ProviderError: The `Tts` failed.
            Overloaded: The queue of the `Tts` or of the encoder is full.
            OpusError: Opus does not have the format of the device.
        """
        speaker = speaker or self.usual
        phrase = (text, language, downlink, speaker.engine, speaker.options)
        if kept := self._kept.get(phrase):
            yield kept
            return
        made: list[bytes] = []
        rate, encoder = speaker.tts.sample_rate, self._encoder(downlink, voice_of(text, language), speaker)
        least, most = size_of(downlink.frame_ms, rate), size_of(_BATCH_MS, rate)
        waiting = bytearray()
        async with closing(speaker.tts.speak(text, language, speaker.options)) as pieces:
            async for piece in pieces:
                waiting += piece
                while len(waiting) >= least:
                    batch = bytes(waiting[:most])
                    del waiting[:most]
                    packets = await self._engine.run(partial(encoder.feed, batch), _ENCODE_SECONDS)
                    made += packets
                    yield packets
        # Less than two packets, and what the resampler holds: to encode it here costs less than to hand it over.
        packets = encoder.finish(bytes(waiting))
        made += packets
        yield packets
        if len(text) <= LONGEST_KEPT:
            self._kept.put(phrase, made)

    def _encoder(self, downlink: AudioFormat, voice: str, speaker: Speaker) -> "_SentenceEncoder":
        rate = speaker.tts.sample_rate
        leveller = Leveller(self._levels.find(f"{voice} {speaker.options.name} {speaker.engine}".rstrip()), rate)
        encoder = Encoder(downlink.sample_rate, downlink.frame_ms, self._bitrate, self._complexity)
        resampler = Resampler(rate, downlink.sample_rate)
        return _SentenceEncoder(leveller, resampler, encoder, downlink.sample_rate)


def voice_of(text: str, language: str) -> str:
    """Return a name for the voice that reads a text: offline voices and many endpoints choose it by the script."""
    return "zh" if _HAN.search(text) else language


class _SentenceEncoder:
    """Encodes one sentence; used by one thread at a time."""

    def __init__(self, leveller: Leveller, resampler: Resampler, encoder: Encoder, sample_rate: int) -> None:
        self._leveller = leveller
        self._resampler = resampler
        self._encoder = encoder
        self._tail = bytes(size_of(_LOOKAHEAD_US / 1000, sample_rate))
        self._rest = b""
        self._sounded = False

    def feed(self, pcm: bytes) -> list[bytes]:
        """Return the packets that this audio completes."""
        self._sounded = self._sounded or bool(pcm)
        return self._cut(self._resampler.feed(self._leveller.process(pcm)))

    def finish(self, pcm: bytes) -> list[bytes]:
        """Return the packets of the last audio, and of the audio that filled no whole packet before."""
        packets = self.feed(pcm)
        if not self._sounded:
            return packets
        rest = self._resampler.flush() + self._tail
        missing = -(len(self._rest) + len(rest)) % self._encoder.frame_bytes
        return packets + self._cut(rest + bytes(missing))

    def _cut(self, pcm: bytes) -> list[bytes]:
        pcm = self._rest + pcm
        size = self._encoder.frame_bytes
        whole = len(pcm) // size * size
        self._rest = pcm[whole:]
        return [self._encoder.encode(pcm[at : at + size]) for at in range(0, whole, size)]


class PhraseCache:
    """The packets of the most recently used phrases.

    Args:
        limit: Bytes of all packets together.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._phrases: OrderedDict[Phrase, tuple[bytes, ...]] = OrderedDict()

    def get(self, phrase: Phrase) -> tuple[bytes, ...]:
        """Return the packets of a phrase; empty if it is not cached."""
        packets = self._phrases.get(phrase, ())
        if packets:
            self._phrases.move_to_end(phrase)
        return packets

    def put(self, phrase: Phrase, packets: Sequence[bytes]) -> None:
        """Cache the packets of a whole phrase, unless they alone exceed the limit."""
        size = sum(map(len, packets))
        if not 0 < size <= self._limit or phrase in self._phrases:
            return
        self._phrases[phrase] = tuple(packets)
        self._held += size
        while self._held > self._limit:
            _, oldest = self._phrases.popitem(last=False)
            self._held -= sum(map(len, oldest))
