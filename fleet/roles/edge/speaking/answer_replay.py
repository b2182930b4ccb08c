"""Repeat answers that a device missed while it reconnected."""

import logging
import math
from uuid import uuid4

from msgspec.structs import replace

from fleet.roles.edge.speaking.downlink import Downlink
from fleet.roles.edge.speaking.speech import SpokenAnswer

log = logging.getLogger(__name__)

TAKEN_SECONDS = 0.6
"""Time from `tts start` after which a device that received it has stopped sending."""
MISSED_PACKETS = 5
"""Packets after that time which show that the device did not receive `tts start`."""
REPEAT_SECONDS = 60.0
"""An older answer is not repeated."""
MOST_REPEATS = 3
"""A repeated answer may be missed too, when the broker goes away again."""


class AnswerReplay:
    """Detects that the device missed an answer, and repeats it.

    Stock firmware in auto mode sends no audio in its speaking state. A device that goes on sending has not received
    `tts start`: MQTT at QoS 0 loses messages while the device reconnects. Outside of its speaking state the device
    discards the audio of the answer.

    Args:
        downlink: Of the session.
    """

    def __init__(self, downlink: Downlink) -> None:
        self._downlink = downlink
        self._speech: SpokenAnswer | None = None
        self._back_at = -math.inf

    def note_packet(self, now: float) -> None:
        """Count a packet that the device sent outside of a listening period."""
        speech = self._downlink.speech
        if speech and speech.playout.started and now - speech.begun_at > TAKEN_SECONDS:
            speech.missed_packets += 1

    def finish(self, speech: SpokenAnswer, now: float) -> bool:
        """Take an answer that was spoken to its end; return whether it is being repeated."""
        missed = speech.missed_packets >= MISSED_PACKETS and speech.repeats < MOST_REPEATS
        self._speech = speech if missed else None
        return self._back_at > speech.begun_at and self._repeat(now)

    def device_returned(self, now: float) -> bool:
        """Note that the device has reconnected; return whether the answer that it missed is being repeated."""
        self._back_at = now
        return self._downlink.speech is None and self._repeat(now)

    def forget(self) -> None:
        """Forget the missed answer: a newer turn has begun."""
        self._speech = None

    def _repeat(self, now: float) -> bool:
        missed, self._speech = self._speech, None
        if missed is None or now - missed.begun_at > REPEAT_SECONDS:
            return False
        log.info("answer missed, repeated", extra={"turn": missed.turn})
        speech = SpokenAnswer(uuid4().hex, local=True, lazy=True, repeats=missed.repeats + 1)
        self._downlink.begin(speech, now)
        for sentence in missed.sentences:
            speech.add(replace(sentence, turn=speech.turn))
        speech.end()
        return True
