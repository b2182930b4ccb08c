"""The greeting with which an agent begins a session."""

import asyncio
from typing import Protocol

from fleet.roles.edge.agents import SessionAgent
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.speaking.turns import SessionTurns
from fleet.wire.messages import ListenMode


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

    Args:
        agent: Of the session.
        session: The device's session.
    """

    def __init__(self, agent: SessionAgent, session: GreetedSession) -> None:
        self._agent = agent
        self._agent.listener = self
        self._session = session
        self._spoken = False

    def agent_changed(self) -> None:
        """Speak the greeting if the device listens already."""
        self.speak_once(asyncio.get_running_loop().time())

    def speak_once(self, now: float) -> None:
        """Speak the greeting, once, when the device begins to listen; not over a user who speaks already."""
        session = self._session
        if self._spoken or session.mode not in ("auto", "realtime") or self._agent.loading:
            return
        self._spoken = True
        greeting = self._agent.current.agent.document.greeting
        period = session.uplink.period
        if greeting and not session.busy and not (period and period.speaking):
            session.turns.apologise(None, self._agent.language, now, greeting)
            session.uplink.yield_floor(interruptible=session.continuous)
