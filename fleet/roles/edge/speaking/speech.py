"""One answer that is being spoken: its sentences, synthesis, playout."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Protocol

from fleet.core.playout import Playout
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns as timed
from fleet.ground.tracing import spans
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.speaking.prepared_sentence import PreparedSentence, SentenceVoice, packets_of
from fleet.wire.edge_messages import SpeakSentenceCommand
from fleet.wire.messages import AudioFormat
from fleet.wire.packet import HEADER, LARGEST

log = logging.getLogger(__name__)

MOST_SENTENCES = 64
"""Sentences that wait for the voice; more are dropped."""
FILLER_SECONDS = 1.0
"""Longest wait for the audio of a filler. It is cached once it was spoken."""
PACKET_SECONDS = 20.0
"""Longest wait for the voice's next packets; speech engines have shorter limits of their own."""

_ABOUT: Final = {"gen_ai.operation.name": "text_to_speech"}


@dataclass(slots=True)
class SpokenAnswer:
    """The state of one answer; call `prepare` first."""

    turn: str
    speech_ended_at: float | None = None
    """When the user stopped speaking, on the loop's clock."""
    local: bool = False
    """Whether the edge made the answer itself (an apology, a repeated answer), so that the shard does not know it."""
    lazy: bool = False
    """Whether `tts start` waits for the first audio."""
    repeats: int = 0
    """How often the device missed this answer before."""
    prepared: PreparedSentence | None = None
    """A sentence that was synthesised before the answer began."""
    emotion: str = ""
    """The emotion that is still to be sent to the device."""
    on_start: Callable[[], None] | None = None
    """Called when `tts start` was sent."""
    begun_at: float = 0.0
    first_sent: bool = False
    first_audio_ms: int = 0
    """From the user's last speech to the first packet; 0 if there was none."""
    playout: Playout = field(init=False)
    texts: dict[int, str] = field(default_factory=dict)
    """Sentences that wait for their first packet."""
    sentences: deque[SpeakSentenceCommand] = field(default_factory=lambda: deque(maxlen=MOST_SENTENCES))
    """The sentences for a repetition; of a very long answer only its end."""
    failed: bool = False
    """Whether a sentence could not be synthesised."""
    missed_packets: int = 0
    """Packets that the device sent when it should have been in its speaking state."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: deque[SpeakSentenceCommand] = field(default_factory=deque)
    _newest: int = -1
    _spoken: int = 0
    _ended: bool = False
    _dropped: bool = False
    _counters: Counter[str] = field(default_factory=Counter)

    @property
    def finished(self) -> bool:
        """Whether no more sentences will come."""
        return self._ended

    @property
    def has_text(self) -> bool:
        """Whether there was a sentence, or nothing will be said."""
        return self._newest >= 0 or self._ended

    def prepare(self, playout: Playout, counters: Counter[str], now: float) -> None:
        """Set the parts that the answer needs.

        Args:
            playout: Paces its packets.
            counters: Count dropped sentences.
            now: The time.
        """
        self.playout, self._counters, self.begun_at = playout, counters, now

    def add(self, sentence: SpeakSentenceCommand) -> None:
        """Queue a sentence; it is dropped and counted if too many wait. Skip one that came before."""
        if self._ended or sentence.index <= self._newest:
            return
        if len(self._waiting) >= MOST_SENTENCES:
            self._counters["sentences_full"] += 1
            if not self._dropped:
                log.warning("sentences dropped, the answer is too long", extra={"first": sentence.index})
            self._dropped = True
            return
        self._newest = sentence.index
        self.emotion = sentence.emotion or self.emotion
        self._waiting.append(sentence)
        self.sentences.append(sentence)
        self.changed.set()

    def fill(self, filler: SpeakSentenceCommand) -> None:
        """Queue a filler, whose index is below 0; an answer with text takes none."""
        if not self.has_text:
            self._waiting.append(filler)
            self.changed.set()

    def end(self) -> None:
        """Mark the text as complete."""
        self._ended = True
        self.changed.set()

    @property
    def whole(self) -> bool:
        """Whether every sentence of the shard's answer was spoken."""
        complete = self._ended and not (self.local or self.failed or self._dropped)
        return complete and self.playout.begun == self._newest + 1

    async def next(self) -> SpeakSentenceCommand | None:
        """Return the next sentence to synthesise, at most one ahead of what plays; None after the last."""
        while True:
            self.changed.clear()
            if self._waiting and self._spoken <= self.playout.begun + 1:
                sentence = self._waiting.popleft()
                self._spoken += sentence.index >= 0
                return sentence
            if self._ended and not self._waiting:
                return None
            await self.changed.wait()

    def pass_over(self) -> None:
        """Count a sentence without packets as none: it begins with the next one, which must not wait for that."""
        self._spoken -= 1

    def pieces(
        self, sentence: SpeakSentenceCommand, voice: SentenceVoice, downlink: AudioFormat
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Return the packets of a sentence: those that were prepared, or else new ones."""
        prepared, self.prepared = self.prepared, None
        if prepared and prepared.fits(sentence):
            return prepared.packets()
        if prepared:
            prepared.close()
        return packets_of(sentence, voice, downlink)

    async def wait_for_room(self) -> None:
        """Wait until the playout takes more packets."""
        while not self.playout.queue.room:
            self.playout.watch_room()
            self.changed.clear()
            await self.changed.wait()


class PacketSender(Protocol):
    """Sends an answer's packets."""

    def take_packets(self) -> None:
        """Take note of new packets in the answer's playout."""


async def synthesise(speech: SpokenAnswer, voice: SentenceVoice, downlink: AudioFormat, sender: PacketSender) -> None:
    """Synthesise all sentences of an answer into its playout; a failure ends the answer early.

    Args:
        speech: The answer.
        voice: Synthesises.
        downlink: Format of the device.
        sender: Sends the packets.
    """
    try:
        while (sentence := await speech.next()) is not None:
            if sentence.index < 0:
                await _fill(sentence, speech, packets_of(sentence, voice, downlink), sender)
                continue
            with spans.span("speak", _ABOUT, traced.find(speech.turn).traceparent) as span:
                span.set({"fleet.sentence": sentence.index})
                spans.set_private(span, {"fleet.text": sentence.text})
                async with aclosing(speech.pieces(sentence, voice, downlink)) as pieces:
                    await _speak(sentence, speech, pieces, sender)
    except (FleetError, TimeoutError) as error:
        reason = str(error) or "no audio within the limit"
        log.warning("speech failed", extra={"reason": reason, "kind": type(error).__name__})
        speech.failed = True
    finally:
        # Also after a crash: without an end the device stays in its speaking state.
        speech.end()
        speech.playout.end()
        sender.take_packets()


async def _fill(
    filler: SpeakSentenceCommand,
    speech: SpokenAnswer,
    pieces: AsyncGenerator[Sequence[bytes], None],
    sender: PacketSender,
) -> None:
    """Add a filler to the playout, unless it is late: the answer does not wait for it. It begins no sentence.

    A voice that does not end is cut off.
    """
    made: list[bytes] = []
    try:
        async with asyncio.timeout(FILLER_SECONDS), aclosing(pieces):
            async for packets in pieces:
                made += packets
                if len(made) >= speech.playout.queue.room:
                    break
    except (FleetError, TimeoutError) as error:
        log.info("filler failed", extra={"kind": type(error).__name__})
        return
    if not speech.has_text:
        _send(made[: speech.playout.queue.room], speech, sender)


async def _speak(
    sentence: SpeakSentenceCommand,
    speech: SpokenAnswer,
    pieces: AsyncGenerator[Sequence[bytes], None],
    sender: PacketSender,
) -> None:
    clock = asyncio.get_running_loop().time
    asked_at, playout = clock(), speech.playout
    speech.texts[sentence.index] = sentence.text
    playout.begin_sentence(sentence.index)
    earlier, first = playout.queue.added, True
    try:
        async with asyncio.timeout(PACKET_SECONDS) as limit:
            async for packets in pieces:
                if first and packets and sentence.index == 0:
                    _note_first_audio(clock() - asked_at)
                first = first and not packets
                while len(packets) > (room := playout.queue.room):
                    _send(packets[:room], speech, sender)
                    packets = packets[room:]
                    limit.reschedule(None)
                    await speech.wait_for_room()
                _send(packets, speech, sender)
                renewed, ends = clock() + PACKET_SECONDS, limit.when()
                # Not for every piece: to set the timer again costs as much as to send a packet.
                if ends is None or renewed - ends > PACKET_SECONDS / 8:
                    limit.reschedule(renewed)
    finally:
        playout.end_sentence()
        if playout.queue.added == earlier:
            speech.pass_over()


def _send(packets: Sequence[bytes], speech: SpokenAnswer, sender: PacketSender) -> None:
    """Add packets to the playout, except those that no datagram holds."""
    sizes = list(map(len, packets))
    if sizes and (min(sizes) == 0 or max(sizes) > LARGEST - HEADER):
        log.warning("packets dropped", extra={"sizes": sizes})
        packets = [packet for packet in packets if 0 < len(packet) <= LARGEST - HEADER]
    playout = speech.playout
    waited = len(playout.queue)
    playout.queue.add(packets)
    if packets and not waited:
        sender.take_packets()


def _note_first_audio(seconds: float) -> None:
    timed.tts_ttfb.observe(seconds)
    spans.current().add_event("first audio")
    log.info("first audio ready", extra={"tts_seconds": round(seconds, 3)})
