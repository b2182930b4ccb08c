"""What a device does when it is told to: its tools, one call at a time, each execution written down before it acts."""

import asyncio
import random
from collections.abc import Callable

from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall, answer
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Tool
from tests.chaos.history import Execution
from tests.chaos.journal import Journal

TOOL = "self.chaos.act"
_SLOW = 0.2
"""Part of the calls that takes so long that anything may happen meanwhile; the others are as quick as stock boards."""


class Hands:
    """The device side of MCP, with one tool that acts.

    Args:
        mac: The device's.
        profile: How its firmware speaks.
        journal: Takes every execution.
        chance: The device's dice.
        reply: Sends a JSON-RPC answer.
    """

    def __init__(
        self, mac: str, profile: Profile, journal: Journal, chance: random.Random, reply: Callable[[str], None]
    ) -> None:
        self.rules_broken: list[str] = []
        self._mac, self._journal, self._chance, self._reply = mac, journal, chance, reply
        self._clock = asyncio.get_running_loop().time
        self._mcp = McpServer(profile, (Tool(TOOL, "Acts once.", _act, (Parameter("turn", "integer"),)),), Board())
        self._jobs: asyncio.Queue[PendingCall] = asyncio.Queue(64)

    def take(self, request: JsonObject) -> None:
        """Answer a request at once, or queue the call that it asks for; a full queue drops it."""
        self.rules_broken += [f"{rule}: {detail}" for rule, detail in self._mcp.check(request)]
        answered = self._mcp.receive(request)
        if isinstance(answered, str):
            self._reply(answered)
        elif answered is not None and not self._jobs.full():
            self._jobs.put_nowait(answered)

    async def run(self) -> None:
        """Run calls one by one, as the main loop of firmware does."""
        while True:
            call = await self._jobs.get()
            turn = int(str(call.arguments.get("turn", -1)))
            token = f"{turn:05d}" + "".join(self._chance.choices("bcdfghjkmnpqrstvwxz", k=6))
            self._journal.execute(Execution(self._clock(), self._mac, int(call.id), call.tool.name, turn, token))
            slow = self._chance.random() < _SLOW
            await asyncio.sleep(self._chance.uniform(0.3, 2.0) if slow else self._chance.uniform(0.005, 0.05))
            self._reply(answer(call.id, token))


async def _act(_: Board, __: Arguments) -> Outcome:
    return True
