"""Push-to-talk in one session: how long the button was held, what follows when nobody spoke, and the turn's end."""

import asyncio
import logging
from typing import Protocol

from fleet.core.text.phrases import Phrase, phrase
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire.edge_messages import SessionSilentEvent
from fleet.wire.messages import AlertCommand

log = logging.getLogger(__name__)

ACCIDENT_SECONDS = 0.3
"""A press that is shorter than this was no attempt to speak: the microphone alone takes 180 ms to begin."""
GOODBYE_SECONDS = 0.3
"""From the end of a press's turn to the goodbye: a new press may be on its way already, and a goodbye would end it. A
wake word takes longer to say than that."""
ABORTED_SECONDS = 2.0
"""The same after an interruption. Firmware says `abort` first and `listen start` right behind it, or after a wake word
when its queue has run dry; a button that only silences it sends no second message."""


class PressedSession(Protocol):
    """What the button asks of its session."""

    language: str
    """ISO 639-1 code of the words on the screen."""

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited or spoken."""

    def fail(self, name: Phrase) -> None:
        """Speak one of the server's own sentences."""


class PushToTalk:
    """The push-to-talk button as the edge sees it.

    Args:
        transport: To the device.
        services: Of the edge.
        session: Whose button it is.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, session: PressedSession) -> None:
        self._transport = transport
        self._services = services
        self._session = session
        self._began: float | None = None
        self._seconds = 0.0
        self._clock = asyncio.get_running_loop().time
        self._goodbye_at = 0.0
        self._goodbye = Timer(self)

    def begin(self, now: float) -> None:
        """The button is pressed. Repeated, it changes nothing."""
        if self._began is None:
            self._began = now

    def end(self, now: float) -> None:
        """The button is released."""
        self._seconds = 0.0 if self._began is None else now - self._began
        self._began = None

    def answer_silence(self) -> None:
        """Answer a press in which nothing was heard as FLEET_UNHEARD_REPLY says; one by accident gets no answer."""
        timed.utterances.add("unheard")
        if self._session.busy:
            return
        reply = self._services.settings.unheard_reply
        accident = self._seconds < ACCIDENT_SECONDS
        log.info("nothing heard", extra={"press_seconds": round(self._seconds, 2), "reply": not accident and reply})
        if accident or reply == "off":
            self.finish()
        elif reply == "spoken" and self._transport.addressed:
            self._session.fail("not_heard")
        else:
            self._transport.send_command(AlertCommand("", phrase("not_heard", self._session.language), "confused"))
            self.finish()

    def finish(self, wait: float = GOODBYE_SECONDS) -> None:
        """The turn of a press is over: firmware that would lose the next wake word gets a goodbye, if it stays idle.

        Args:
            wait: Seconds in which it may still say that it listens again.
        """
        if self._transport.opened.ends_presses:
            self._goodbye_at = self._clock() + wait
            self._services.socket.wheel.set(self._goodbye, self._goodbye_at)

    def go_on(self) -> None:
        """The device listens again, or its session is over: no goodbye."""
        self._services.socket.wheel.cancel(self._goodbye)

    def on_timer(self, now: float) -> float | None:
        """Ask the shard for a goodbye, if the device stayed idle."""
        if now < self._goodbye_at:
            # The wheel fires long waits early.
            return self._goodbye_at
        if self._began is None and not self._session.busy:
            opened = self._transport.opened
            silent = SessionSilentEvent(device=opened.device, session=opened.session, reason="pressed")
            self._services.outbox.put(opened.shard, silent)
        return None
