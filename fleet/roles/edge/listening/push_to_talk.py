"""Push-to-talk in one session: the length of a press, the answer to a silent press, and the end of its turn."""

import logging
from typing import Protocol

from fleet.core.firmware_traits import loses_wake_word
from fleet.core.text.phrases import Phrase, phrase
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire.edge_messages import SessionSilentEvent
from fleet.wire.messages import AlertCommand

log = logging.getLogger(__name__)

ACCIDENT_SECONDS = 0.3
"""A shorter press was an accident: the microphone alone takes 180 ms to start."""
GOODBYE_SECONDS = 0.3
"""From the end of a press's turn to the goodbye: a new press may be on its way, and a goodbye would end it. A wake word
takes longer to say."""
ABORTED_SECONDS = 2.0
"""The same after an interruption. Firmware sends `abort`, then `listen start` at once, or after a wake word when its
playback queue is empty. If the button only stops the answer, no second message follows."""


class PressedSession(Protocol):
    """The session of a button."""

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited or spoken."""

    def fail(self, name: Phrase) -> None:
        """Speak an apology."""


class PushToTalk:
    """The state of a device's push-to-talk button.

    Args:
        transport: To the device.
        services: Of the edge.
        session: The device's session.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, session: PressedSession) -> None:
        self._transport = transport
        self._services = services
        self._session = session
        self._began: float | None = None
        self._seconds = 0.0
        self._goodbye_at = 0.0
        self._goodbye = Timer()

    def begin(self, now: float) -> None:
        """Note that the button is pressed; a repeated call changes nothing."""
        if self._began is None:
            self._began = now

    def end(self, now: float) -> None:
        """Note that the button is released."""
        self._seconds = 0.0 if self._began is None else now - self._began
        self._began = None

    def answer_silent_press(self) -> None:
        """Answer a press without speech as FLEET_UNHEARD_REPLY says; do not answer a press by accident."""
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
            text = phrase("not_heard", self._transport.agent.language)
            self._transport.send_command(AlertCommand("", text, "confused"))
            self.finish()

    def finish(self, wait: float = GOODBYE_SECONDS) -> None:
        """End the turn of a press: firmware that would lose the next wake word gets a goodbye, if it stays idle.

        Args:
            wait: Seconds for a new `listen start` before the goodbye.
        """
        opened = self._transport.opened
        if loses_wake_word(opened.board, opened.firmware):
            wheel = self._services.socket.wheel
            self._goodbye_at = wheel.clock() + wait
            wheel.set(self._goodbye, self._goodbye_at, self)

    def cancel_goodbye(self) -> None:
        """Cancel the goodbye: the device listens again, or its session has ended."""
        self._services.socket.wheel.cancel(self._goodbye)

    def on_timer(self, now: float) -> float | None:
        """Ask the shard to end the session, if the device stayed idle."""
        if now < self._goodbye_at:
            # The wheel fires long waits early.
            return self._goodbye_at
        if self._began is None and not self._session.busy:
            opened = self._transport.opened
            silent = SessionSilentEvent(device=opened.device, session=opened.session, reason="pressed")
            self._services.outbox.put(opened.shard, silent)
        return None
