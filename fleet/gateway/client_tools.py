"""The tools that one client has registered; they end with its connection."""

from collections.abc import Sequence

from fleet.wire.gateway_messages import ToolsRegistered, ToolStatus
from fleet.wire.gateway_tools import BadTool
from fleet.wire.mcp import ToolSpec


class ClientTools:
    """A connection's own list.

    A name is unique in it (the document's section 7.3); one that a server's tool has too hides that one.

    Args:
        most: How many it takes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tools: dict[str, ToolSpec] = {}

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """What is registered, under the client's own names."""
        return tuple(self._tools.values())

    def register(self, entries: Sequence[ToolSpec | BadTool]) -> ToolsRegistered:
        """Add tools; return what became of each."""
        statuses = [self._add(entry) for entry in entries]
        count = sum(status.status == "registered" for status in statuses)
        return ToolsRegistered(count=count, tools=statuses)

    def _add(self, entry: ToolSpec | BadTool) -> ToolStatus:
        if isinstance(entry, BadTool):
            return ToolStatus(name=entry.name, status="failed", error=entry.reason, code=entry.code)
        if entry.name in self._tools:
            return _refuse(entry, "Tool name already exists")
        if len(self._tools) >= self._most:
            return _refuse(entry, f"Too many tools, at most {self._most} can be registered")
        self._tools[entry.name] = entry
        return ToolStatus(name=entry.name)


def _refuse(tool: ToolSpec, reason: str) -> ToolStatus:
    return ToolStatus(name=tool.name, status="failed", error=reason, code="TOOL_REGISTRATION_FAILED")
