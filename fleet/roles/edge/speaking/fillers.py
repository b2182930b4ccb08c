"""Short phrases while a model or a tool keeps the user waiting (docs/adr/0036)."""

import logging
from typing import Protocol

from fleet.core.text.phrases import Phrase, phrase
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.downlink import Downlink
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire.edge_messages import SpeakSentenceCommand, StartAnswerCommand

log = logging.getLogger(__name__)

FURTHER_SECONDS = 5.0
"""From the first phrase of a turn to the second, and last, one."""
_PHRASES: tuple[Phrase, ...] = ("one_moment", "still_working")


class AnswerStarter(Protocol):
    """Begins answers."""

    def start_answer(self, command: StartAnswerCommand, now: float) -> None:
        """Begin an answer."""


class Fillers:
    """Speaks the fillers of one session's turns, at most two a turn, before the first words of the answer.

    They are sound only: no text is shown, and history, journal and latencies know nothing of them.

    Args:
        transport: Names the session in the log.
        services: Of the edge.
        downlink: Of the session.
        starter: Begins an answer that has not begun.
    """

    def __init__(
        self, transport: DownlinkTransport, services: EdgeServices, downlink: Downlink, starter: AnswerStarter
    ) -> None:
        self._transport = transport
        self._services = services
        self._downlink = downlink
        self._starter = starter
        self._timer = Timer()
        self._turn = self._language = ""
        self._due = 0.0
        self._left: list[Phrase] = []

    def wait(self, turn: str, language: str, now: float) -> None:
        """Begin to wait for the answer of a turn, whose user speaks this language (ISO 639-1); ends an older wait."""
        if seconds := self._transport.agent.settings.filler_seconds:
            self._turn, self._language, self._left = turn, language, list(_PHRASES)
            self._due = now + seconds
            self._services.socket.wheel.set(self._timer, self._due, self)

    def stop(self) -> None:
        """Speak no more of them in this turn: it is over, or the device cannot play them."""
        self._services.socket.wheel.cancel(self._timer)

    def on_timer(self, now: float) -> float | None:
        """Speak the next phrase, if the user still waits."""
        if now < self._due:
            # The wheel fires long waits early.
            return self._due
        turn, language, opened = self._turn, self._language, self._transport.opened
        if self._downlink.speech is None:
            # This does nothing for a turn that is over.
            start = StartAnswerCommand(device=opened.device, session=opened.session, turn=turn)
            self._starter.start_answer(start, now)
        speech = self._downlink.speech
        if speech is None or speech.turn != turn or speech.has_text:
            return None
        name = self._left.pop(0)
        text = phrase(name, language)
        speech.fill(
            SpeakSentenceCommand(
                device=opened.device, session=opened.session, turn=turn, index=-1, text=text, language=language
            )
        )
        timed.fillers.add()
        with self._transport.fields(turn):
            log.info("filler", extra={"phrase": name})
        self._due = now + FURTHER_SECONDS
        return self._due if self._left else None
