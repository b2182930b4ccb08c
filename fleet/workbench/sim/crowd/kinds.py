"""The kinds of devices in a crowd: boards with their tools, of stock firmware."""

from dataclasses import replace
from functools import cache
from typing import Final

from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.profile import Profile, find_profile
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall
from fleet.workbench.sim.tools.tool import Outcome

BOARDS: Final = ("P1", "P2", "P7", "P1-camera", "P1-tools")
"""Profiles; the last one has a list of three pages."""
NEWER: Final = "P9"


class Kind:
    """A board with a version of the firmware; all devices of the kind share it.

    Args:
        profile: Of the board.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._server = McpServer(profile, tools_of(profile), Board())

    def receive(self, request: JsonObject, board: Board) -> str | PendingCall | None:
        """Return what a device answers at once, a call to run, or None; see `McpServer.receive`."""
        self._server.board = board
        return self._server.receive(request)

    async def run(self, call: PendingCall, board: Board) -> tuple[Outcome, str]:
        """Run a call on a device; return its outcome and the text of the answer."""
        self._server.board = board
        return await self._server.run(call)

    def refuse(self, call: PendingCall, reason: str) -> str:
        """Return the answer to a call whose tool failed."""
        return self._server.fail_call(call.id, reason)


@cache
def kind_of(profile: str, version: str = "") -> Kind:
    """Return a kind; without a version, that of the profile."""
    found = find_profile(profile)
    return Kind(replace(found, version=version or found.version))
