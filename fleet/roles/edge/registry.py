"""The sessions of an edge, found by the ssrc of a packet or the device of a command."""

from collections.abc import Iterator

from fleet.roles.edge.session import EdgeSession


class SessionRegistry:
    """The newest session of each device."""

    def __init__(self) -> None:
        self.by_ssrc: dict[int, EdgeSession] = {}
        self._by_device: dict[str, EdgeSession] = {}

    def __len__(self) -> int:
        return len(self._by_device)

    def __iter__(self) -> Iterator[EdgeSession]:
        return iter(list(self._by_device.values()))

    def find(self, device: str, session: str) -> EdgeSession | None:
        """Return a session if it is the newest of its device."""
        found = self._by_device.get(device)
        return found if found and found.opened.session == session else None

    def add(self, session: EdgeSession) -> None:
        """Add a session; close the device's earlier one."""
        self.remove(session.opened.device)
        self._by_device[session.opened.device] = session
        self.by_ssrc[session.opened.ssrc] = session

    def remove(self, device: str) -> None:
        """Close a device's session, if there is one."""
        session = self._by_device.pop(device, None)
        if session:
            if self.by_ssrc.get(session.opened.ssrc) is session:
                del self.by_ssrc[session.opened.ssrc]
            session.close()
