"""The loudspeaker in real time: decodes what the model of the queue plays, when it plays."""

import asyncio
from typing import Protocol

from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.workbench.sim.audio.speaker import Speaker
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loudness import first_audible


class PlaybackListener(Protocol):
    """Is called with what is played."""

    def played(self, at: float, pcm: bytes, sample_rate: int) -> None:
        """A packet's PCM sounds from `at` on."""

    def sounded(self, timestamp: int) -> None:
        """A packet of this timestamp began to sound."""

    def drained(self, at: float) -> None:
        """The last sound was handed to the loudspeaker by `at`; for firmware, playback is over."""


class Playback:
    """Plays packets.

    Args:
        journal: Takes the counters and breaches; its clock is the present.
        profile: Has the length of the queue and the delay of the loudspeaker.
        listener: Called with everything that is played.
    """

    def __init__(self, journal: Journal, profile: Profile, listener: PlaybackListener) -> None:
        self._journal = journal
        self._listener = listener
        self._rate = 24_000
        self._decoder: Decoder | None = None
        self._wake = asyncio.Event()
        self.speaker = Speaker(profile.queue, profile.timing.dma)

    def is_idle(self) -> bool:
        """Advance the model to the present; return whether everything is handed over to the loudspeaker."""
        return self.speaker.idle(self._journal.clock())

    def set_rate(self, sample_rate: int) -> None:
        """Decode to this rate from now on."""
        self._rate = sample_rate
        self._decoder = None

    def push(self, packet: bytes, seconds: float, timestamp: int = 0) -> bool:
        """Queue a packet; return False when the queue was full and it was dropped."""
        now = self._journal.clock()
        admitted = self.speaker.push(packet, seconds, now, timestamp)
        self._journal.peak("queue_deepest", self.speaker.depth)
        self._wake.set()
        return admitted

    def advance(self) -> None:
        """Advance the model to the present."""
        self.speaker.advance(self._journal.clock())

    def clear(self) -> int:
        """Drop the waiting packets and begin a new answer; return how many were dropped."""
        self._hear()
        self._decoder = None
        return self.speaker.clear()

    def has_sound(self, packets: list[bytes]) -> bool:
        """Return whether packets that are not played hold any sound."""
        decoder = Decoder(self._rate)
        pcm = b"".join(_decode(decoder, packet) or b"" for packet in packets)
        return first_audible(pcm) is not None

    async def run(self) -> None:
        """Play until cancelled."""
        last_reported_end: float | None = None
        while True:
            now = self._journal.clock()
            self._hear()
            due, ended = self.speaker.due(now), self.speaker.busy_until
            # A packet may have come and ended since the last look, if this process is late.
            if due is None and ended is not None and ended != last_reported_end:
                last_reported_end = ended
                self._listener.drained(ended)
            await self._sleep_until(due)

    async def _sleep_until(self, due: float | None) -> None:
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _hear(self) -> None:
        for played in self.speaker.take(self._journal.clock()):
            self._listener.sounded(played.timestamp)
            if self._decoder is None:
                self._decoder = Decoder(self._rate)
            pcm = _decode(self._decoder, played.packet)
            if pcm is None:
                self._journal.count("downlink_undecodable")
                self._journal.violate("audio-undecodable", f"{len(played.packet)} bytes")
                continue
            self._journal.count("downlink_played")
            self._listener.played(played.at, pcm, self._rate)


def _decode(decoder: Decoder, packet: bytes) -> bytes | None:
    try:
        return decoder.decode(packet)
    except OpusError:
        return None
