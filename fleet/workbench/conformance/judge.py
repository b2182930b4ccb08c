"""What must hold for the datagrams that a device got, whoever sent them. Times are seconds on one clock."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.audio import toc
from fleet.workbench.sim.audio.speaker import Gap, Speaker
from fleet.workbench.sim.connection.keystream import Keystream
from fleet.workbench.sim.records.loudness import first_audible
from fleet.workbench.sim.scripted.capture import Datagram

HEADER = 16
SMALLEST, LARGEST = 24, 1200
_UNBOUNDED = 10_000
_APART, _WINDOW, _MOST_IN_WINDOW = 0.005, 0.020, 5


@dataclass(frozen=True, slots=True)
class Playback:
    """How a device would have played datagrams: `deepest` queue in packets, `ended` when the last sound ends."""

    deepest: int
    gaps: tuple[Gap, ...]
    ended: float

    @property
    def longest_gap(self) -> float:
        return max((gap.seconds for gap in self.gaps), default=0.0)


def judge_sequences(datagrams: Sequence[Datagram]) -> str:
    """Sequence numbers begin at 1 or above and rise with every datagram; only a hello lets them begin again.

    Raises:
        Failed: They do not.
    """
    spans = []
    for epoch in sorted({one.epoch for one in datagrams}):
        numbers = [one.sequence for one in datagrams if one.epoch == epoch]
        require(numbers[0] >= 1, f"the first sequence number is {numbers[0]}; firmware never accepts 0")
        for before, after in pairwise(numbers):
            require(after > before, f"sequence number {after} came after {before}")
        spans.append(f"{numbers[0]} to {numbers[-1]}")
    require(spans, "no datagram came")
    return f"sequence numbers {', then '.join(spans)}"


def judge_keystream(nonce: bytes, uplink: Sequence[tuple[bytes, int]], datagrams: Sequence[Datagram]) -> str:
    """No two datagrams share keystream, nor does one with an uplink packet; the flags keep the directions apart.

    Args:
        nonce: Of the hello.
        uplink: Header and payload length of what the device sent.
        datagrams: What it got, all of one hello.

    Raises:
        Failed: Some do, or the flags are those of the nonce.
    """
    stream = Keystream()
    for header, length in uplink:
        stream.send(header, length)
    for one in datagrams:
        met = stream.receive(one.raw[:HEADER], len(one.raw) - HEADER)
        require(not met, f"datagram {one.sequence} (timestamp {one.timestamp}) uses keystream for a second time")
        require(one.flags != nonce[1], f"datagram {one.sequence} has the flags of the nonce, {one.flags:#04x}")
    return f"{len(datagrams)} datagrams and {len(uplink)} uplink packets, no keystream used twice"


def judge_forms(datagrams: Sequence[Datagram]) -> str:
    """Every datagram has 24 to 1200 bytes, type 1 and its true payload length.

    Raises:
        Failed: One has not.
    """
    for one in datagrams:
        size = len(one.raw)
        require(SMALLEST <= size <= LARGEST, f"a datagram of {size} bytes")
        require(one.kind == 1, f"a datagram of type {one.kind}")
        require(one.length == size - HEADER, f"a header that tells {one.length} of {size - HEADER} bytes of payload")
    sizes = [len(one.raw) for one in datagrams]
    require(sizes, "no datagram came")
    return f"{len(sizes)} datagrams of {min(sizes)} to {max(sizes)} bytes"


def judge_spacing(datagrams: Sequence[Datagram], seconds: float = 0.5) -> str:
    """In the first 500 ms at most 5 datagrams come within any 20 ms, and those of a burst are 5 ms apart.

    A burst is three or more: one that was held up on its way comes close to the next, which no server can help.

    Raises:
        Failed: They come faster.
    """
    require(datagrams, "no datagram came")
    times = [one.at for one in datagrams if one.at - datagrams[0].at <= seconds]
    most = max(bisect_right(times, at + _WINDOW) - number for number, at in enumerate(times))
    closest = min((third - first for first, third in zip(times, times[2:], strict=False)), default=seconds)
    seen = f"{len(times)} datagrams in {seconds:g} s, at most {most} within 20 ms, any 3 within {closest * 1000:.1f} ms"
    require(most <= _MOST_IN_WINDOW, seen)
    require(closest >= 2 * _APART, seen)
    return seen


def judge_timestamps(datagrams: Sequence[Datagram]) -> str:
    """Timestamps are above 0 and rise with every datagram, and each lasts 60 ms: server echo cancellation needs that.

    Raises:
        Failed: They do not.
    """
    require(datagrams, "no datagram came")
    require(datagrams[0].timestamp > 0, "the first timestamp is 0, which means no reference")
    for before, after in pairwise(datagrams):
        require(after.timestamp > before.timestamp, f"timestamp {after.timestamp} came after {before.timestamp}")
    lengths = {toc.duration_ms(one.payload) for one in datagrams}
    require(lengths == {60}, f"packets of {', '.join(f'{length:g}' for length in sorted(lengths))} ms instead of 60")
    return f"timestamps {datagrams[0].timestamp} to {datagrams[-1].timestamp}, {len(datagrams)} packets of 60 ms"


def play(datagrams: Sequence[Datagram]) -> Playback:
    """Play datagrams as a device would whose queue has no end."""
    speaker, deepest = Speaker(_UNBOUNDED), 0
    for one in datagrams:
        speaker.push(one.payload, toc.duration_ms(one.payload) / 1000, one.at)
        deepest = max(deepest, speaker.depth)
    speaker.advance(float("inf"))
    return Playback(deepest, tuple(speaker.take_gaps()), speaker.busy_until or 0.0)


def decode(datagrams: Sequence[Datagram], rate: int, frame_ms: int) -> bytes:
    """Return the PCM of datagrams.

    Raises:
        Failed: One is no mono Opus packet of this length.
    """
    decoder, pcm = Decoder(rate), bytearray()
    for one in datagrams:
        lasts = toc.duration_ms(one.payload)
        require(lasts == frame_ms, f"datagram {one.sequence} lasts {lasts:g} ms instead of {frame_ms}")
        require(not toc.is_stereo(one.payload), f"datagram {one.sequence} is stereo")
        try:
            pcm += decoder.decode(one.payload)
        except OpusError as error:
            raise Failed(f"datagram {one.sequence} is no Opus: {error}") from error
    return bytes(pcm)


def silent_head(datagrams: Sequence[Datagram], rate: int) -> int:
    """Return how many datagrams come before the first sound."""
    decoder = Decoder(rate)
    for number, one in enumerate(datagrams):
        try:
            pcm = decoder.decode(one.payload)
        except OpusError:
            continue
        if first_audible(pcm) is not None:
            return number
    return len(datagrams)
