"""Push-to-talk in one session: how long the button was held, and what follows when nobody spoke."""

import logging
from collections.abc import Callable

from fleet.core.phrases import Phrase, phrase
from fleet.edge.line import Line
from fleet.edge.services import Services
from fleet.metrics import turns as timed
from fleet.wire.mail import SessionSilent
from fleet.wire.words import Alert

log = logging.getLogger(__name__)

ACCIDENT_SECONDS = 0.3
"""A press that is shorter than this was no attempt to speak: the microphone alone takes 180 ms to begin."""


class Press:
    """The push-to-talk button as the edge sees it.

    Args:
        line: To the device.
        services: Of the edge.
        say: Speaks one of the server's own sentences.
        busy: Whether an answer is awaited or spoken.
    """

    def __init__(self, line: Line, services: Services, say: Callable[[Phrase], None], busy: Callable[[], bool]) -> None:
        self._line = line
        self._services = services
        self._say = say
        self._busy = busy
        self._began: float | None = None
        self._seconds = 0.0

    def begin(self, now: float) -> None:
        """The button is pressed. Repeated, it changes nothing."""
        if self._began is None:
            self._began = now

    def end(self, now: float) -> None:
        """The button is released."""
        self._seconds = 0.0 if self._began is None else now - self._began
        self._began = None

    def answer_silence(self, language: str) -> None:
        """Answer a press in which nothing was heard as FLEET_UNHEARD_REPLY says; one by accident gets no answer.

        Args:
            language: Of the words on the screen.
        """
        timed.utterances.add("unheard")
        if self._busy():
            return
        reply = self._services.settings.unheard_reply
        accident = self._seconds < ACCIDENT_SECONDS
        log.info("nothing heard", extra={"press_seconds": round(self._seconds, 2), "reply": not accident and reply})
        if accident or reply == "off":
            self.finish()
        elif reply == "spoken" and self._line.addressed:
            self._say("not_heard")
        else:
            self._line.order(Alert("", phrase("not_heard", language), "confused"))
            self.finish()

    def finish(self) -> None:
        """The turn of a press is over: firmware that would lose the next wake word gets a goodbye."""
        opened = self._line.opened
        if opened.ends_presses and self._began is None:
            silent = SessionSilent(device=opened.device, session=opened.session, reason="pressed")
            self._services.tell(opened.shard, silent)
