"""Texts of `listen detect`: a wake word, or a question that was typed (docs/protocol/xiaozhi.md)."""

import logging

from fleet.core.wake_words import LONGEST_QUESTION, judge
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.listening.burst import BURST_SECONDS
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.roles.edge.turn_taking import TurnTaking

log = logging.getLogger(__name__)

LATE_SECONDS = 1.0
"""Longest delay of a wake word's audio (UDP) behind its message (MQTT); on a modem the two differ by 0.4 s. Only a text
that nothing else distinguishes from a wake word waits for the audio."""


class DetectedTextFilter:
    """Distinguishes wake words from typed questions in one session.

    Args:
        transport: To the device.
        services: Of the edge.
        turn_taking: Of the session.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, turn_taking: TurnTaking) -> None:
        self._transport = transport
        self._services = services
        self._turn_taking = turn_taking
        self._text = ""
        self._listening = False
        self._timer = Timer()

    def take(self, text: str, now: float) -> None:
        """Take a text; discard the audio before it, which is not part of the next utterance."""
        self.close()
        self._text = text
        # Read this now: firmware opens its microphone right after the text.
        self._listening = self._turn_taking.busy or self._turn_taking.uplink.gate == "open"
        self._turn_taking.uplink.settle(now)
        if not self._decide(now, late=False):
            self._services.socket.wheel.set(self._timer, now + LATE_SECONDS, self)

    def close(self) -> None:
        """Forget a text without a decision."""
        self._services.socket.wheel.cancel(self._timer)

    def on_timer(self, now: float) -> None:
        """Decide on a text whose waiting time is over."""
        with self._transport.fields():
            self._decide(now, late=True)

    def _decide(self, now: float, *, late: bool) -> bool:
        """Decide, if possible, and act on the decision; return whether it was possible."""
        mac, words, text = self._transport.opened.device, self._services.wake_words, self._text
        uplink = self._turn_taking.uplink
        ahead = uplink.burst.seconds(now) - self._services.stalls.waited(now)
        burst = ahead >= BURST_SECONDS
        known = words.knows(mac, text)
        verdict = judge(text, known=known, listening=self._listening, burst=burst, late=late)
        if verdict.typed is None:
            return False
        about = {"characters": len(text), "reason": verdict.reason, "pii": {"text": text}}
        log.info("typed question" if verdict.typed else "wake word", extra=about)
        if verdict.typed:
            self._answer(text, now)
        else:
            timed.utterances.add("wake_word")
            if burst:
                words.learn(mac, text)
        return True

    def _answer(self, text: str, now: float) -> None:
        if self._services.questions.take(self._transport.opened.device, now):
            timed.utterances.add("typed_too_often")
            log.warning("typed question refused", extra={"reason": "too often"})
        elif len(text) > LONGEST_QUESTION:
            timed.utterances.add("typed_too_long")
            log.warning("typed question refused", extra={"reason": "too long", "characters": len(text)})
            self._turn_taking.fail("text_too_long")
        else:
            self._turn_taking.take_question(text.strip(), now)
