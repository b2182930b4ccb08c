"""Answers that a device missed, and hears when it is back."""

import logging
import math
from uuid import uuid4

from fleet.roles.edge.speaking.downlink import Downlink
from fleet.roles.edge.speaking.speech import SpokenAnswer

log = logging.getLogger(__name__)

TAKEN_SECONDS = 0.6
"""From the announcement of speech until a device that heard it sends nothing more."""
MISSED_PACKETS = 5
"""Packets that come after that from a device that did not hear it."""
REPEAT_SECONDS = 60.0
"""How old an answer may be that is spoken once more."""


class AnswerReplay:
    """Watches whether the device takes an answer of a session, and repeats it once if not.

    Stock firmware in auto mode sends nothing while it speaks, so one that goes on sending does not know: MQTT at QoS 0
    loses what is said while the device reconnects, and the device throws away the audio that comes meanwhile.

    Args:
        downlink: Of the session.
    """

    def __init__(self, downlink: Downlink) -> None:
        self._downlink = downlink
        self._speech: SpokenAnswer | None = None
        self._back_at = -math.inf

    def hear(self, now: float) -> None:
        """The device sent a packet though it is not listened to."""
        speech = self._downlink.speech
        if speech and speech.playout.started and now - speech.begun_at > TAKEN_SECONDS:
            speech.unheard += 1

    def keep(self, speech: SpokenAnswer, now: float) -> bool:
        """Take an answer that was spoken to its end; return whether it is being spoken once more."""
        missed = speech.unheard >= MISSED_PACKETS and not speech.again
        self._speech = speech if missed else None
        return self._back_at >= speech.begun_at and self._repeat(now)

    def meet(self, now: float) -> bool:
        """The device has connected anew; return whether what it missed is being spoken once more."""
        self._back_at = now
        return self._downlink.speech is None and self._repeat(now)

    def forget(self) -> None:
        """Something newer is said."""
        self._speech = None

    def _repeat(self, now: float) -> bool:
        missed, self._speech = self._speech, None
        if missed is None or now - missed.begun_at > REPEAT_SECONDS:
            return False
        log.info("answer was missed, and is spoken again", extra={"turn": missed.turn})
        speech = SpokenAnswer(uuid4().hex, own=True, lazy=True, again=True)
        self._downlink.begin(speech, now)
        for sentence in missed.said:
            speech.add(sentence.model_copy(update={"turn": speech.turn}))
        speech.end()
        return True
