"""Remember sessions that a newer hello has just replaced."""

import asyncio

MEMORY_SECONDS = 0.8
"""Time after a second hello in which a device may not have its answer yet, and still use the first session's id."""


class ReplacedSessions:
    """Remembers replaced sessions for a moment. After that their messages are answered with a goodbye."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}

    def note(self, mac: str, session: str) -> None:
        """Note that a hello of the device has just replaced this session."""
        self._sessions[mac] = session
        asyncio.get_running_loop().call_later(MEMORY_SECONDS, self._forget, mac, session)

    def contains(self, mac: str, session: str) -> bool:
        """Return whether a message with this session id belongs to the session that replaced it."""
        return self._sessions.get(mac) == session

    def _forget(self, mac: str, session: str) -> None:
        if self.contains(mac, session):
            del self._sessions[mac]
