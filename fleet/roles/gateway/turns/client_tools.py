"""The tools that one client has registered; they exist as long as its connection."""

from collections.abc import Sequence

from fleet.core.shared_budget import BudgetShare
from fleet.wire.gateway_messages import ToolsRegistered, ToolStatus
from fleet.wire.gateway_tools import LARGEST_TOOLS, TOO_MUCH, BadTool
from fleet.wire.json_text import json_length
from fleet.wire.mcp import ToolSpec

ALL_FULL = "The tools of all connections together are too many now, come again later"
_ENTRY = 200
"""Characters that a tool counts in addition to its JSON."""


class ClientTools:
    """The tools of one connection.

    A name is unique in it (the API's document, section 7.3). A tool hides a server's tool of the same name.

    Args:
        most: Most tools.
        share: Its share in the budget for the tools of all connections.
    """

    def __init__(self, most: int, share: BudgetShare) -> None:
        self._most = most
        self._share = share
        self._size = 0
        self._tools: dict[str, ToolSpec] = {}

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The registered tools, with the client's names."""
        return tuple(self._tools.values())

    def register(self, entries: Sequence[ToolSpec | BadTool]) -> ToolsRegistered:
        """Add tools; return the outcome for each."""
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
        size = self._size + json_length([entry.name, entry.description, entry.input_schema])
        if size > LARGEST_TOOLS:
            return _refuse(entry, TOO_MUCH)
        if not self._share.change(budgeted(size, len(self._tools) + 1)):
            return _refuse(entry, ALL_FULL)
        self._size = size
        self._tools[entry.name] = entry
        return ToolStatus(name=entry.name)


def budgeted(characters: int, tools: int) -> int:
    """Return the part of `resources.LARGEST_OF_ALL` that tools take."""
    return characters + tools * _ENTRY


def _refuse(tool: ToolSpec, reason: str) -> ToolStatus:
    return ToolStatus(name=tool.name, status="failed", error=reason, code="TOOL_REGISTRATION_FAILED")
