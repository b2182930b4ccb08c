"""Sessions that a newer hello replaced a moment ago."""

import asyncio

MEMORY_SECONDS = 0.8
"""For so long after its second hello a device may not have its answer yet, and speak in the name of the first."""


class ReplacedSessions:
    """Remembers for a moment which session was replaced; forgotten, its messages are answered with a goodbye."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}

    def note(self, mac: str, session: str) -> None:
        """A hello of the device has just replaced this session."""
        self._sessions[mac] = session
        asyncio.get_running_loop().call_later(MEMORY_SECONDS, self._forget, mac, session)

    def holds(self, mac: str, session: str) -> bool:
        """Whether a message of that session is meant for the one that replaced it."""
        return self._sessions.get(mac) == session

    def _forget(self, mac: str, session: str) -> None:
        if self.holds(mac, session):
            del self._sessions[mac]
