"""The greeting with which an agent begins a session."""

import asyncio
import logging
from typing import Protocol
from uuid import uuid4

from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.roles.edge.speaking.turns import SessionTurns
from fleet.wire.edge_messages import SpeakSentenceCommand
from fleet.wire.messages import ListenMode

log = logging.getLogger(__name__)


class GreetedSession(Protocol):
    """The session in which an agent greets."""

    mode: ListenMode | None
    continuous: bool
    turns: SessionTurns
    uplink: Uplink

    @property
    def busy(self) -> bool:
        """Whether an utterance is being recognised, or its answer awaited or spoken."""


class Greeting:
    """Speaks the greeting of one session's agent.

    Until its first audio is there the edge goes on listening: the user may speak right after the wake word, and then
    there is no greeting.

    Args:
        transport: To the device; has the agent.
        session: The device's session.
    """

    def __init__(self, transport: DownlinkTransport, session: GreetedSession) -> None:
        self._transport = transport
        transport.agent.listener = self
        self._session = session
        self._spoken = False
        self._waiting: SpokenAnswer | None = None
        """The greeting whose first audio is not there yet."""

    def agent_changed(self) -> None:
        """Speak the greeting if the device listens already."""
        self.speak_once(asyncio.get_running_loop().time())

    def speak_once(self, now: float) -> None:
        """Speak the greeting, once, when the device begins to listen; not over a user who speaks already."""
        session, agent = self._session, self._transport.agent
        if self._spoken or session.mode not in ("auto", "realtime") or agent.loading:
            return
        self._spoken = True
        text = agent.current.agent.document.greeting
        period = session.uplink.period
        if not text or session.busy or (period and period.speaking):
            return
        opened, turn = self._transport.opened, uuid4().hex
        about = {"device": opened.device, "session": opened.session, "turn": turn, "language": agent.language}
        self._waiting = speech = SpokenAnswer(turn, local=True, lazy=True, on_start=self._begin)
        session.turns.downlink.begin(speech, now)
        speech.add(SpeakSentenceCommand(index=0, text=text, **about))
        speech.end()

    def give_way(self) -> None:
        """Drop the greeting if it has not begun: the user speaks."""
        waiting, self._waiting = self._waiting, None
        if waiting and self._session.turns.downlink.speech is waiting:
            self._session.turns.cancel()
            log.info("no greeting, the user speaks")

    def _begin(self) -> None:
        self._waiting = None
        self._session.uplink.yield_floor(interruptible=self._session.continuous)
