"""The tools that all clients have registered: one budget for all connections together."""

LARGEST_OF_ALL = 8 * 1024 * 1024
"""Characters of JSON; as objects they take up to 25 times as many bytes. 64 connections of the largest size, more than
one address may open by default."""
_ENTRY = 200
"""What a tool counts besides its JSON."""


class ToolRoom:
    """Shares the budget.

    Args:
        limit: Characters of JSON.
    """

    def __init__(self, limit: int = LARGEST_OF_ALL) -> None:
        self.limit = limit
        self.used = 0
        """What all connections have."""


class ToolShare:
    """What the tools of one connection take of the budget, until it is closed.

    Args:
        room: The budget.
    """

    def __init__(self, room: ToolRoom) -> None:
        self._room = room
        self._taken = 0
        self._closed = False

    def change(self, characters: int, tools: int) -> bool:
        """Take as much as so many tools need in place of what was taken before; False when there is no room."""
        wanted = characters + tools * _ENTRY
        if self._closed or self._room.used - self._taken + wanted > self._room.limit:
            return False
        self._room.used += wanted - self._taken
        self._taken = wanted
        return True

    def close(self) -> None:
        """Give everything back; nothing is taken any more."""
        self._room.used -= self._taken
        self._taken, self._closed = 0, True
