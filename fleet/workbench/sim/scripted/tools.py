"""The tool server of a scripted device: firmware's answers, unless a test has another one ready."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.workbench.sim.messages.message import JsonObject, item, member, text
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.audit import Finding
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall
from fleet.workbench.sim.tools.tool import Restart, Tool

Intercept = Callable[[JsonObject], str | bytes | None]
"""Given a request, returns the reply's payload (raw, put into the envelope as it is), `None` for no reply."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One JSON-RPC request of the server: `at` on the clock."""

    at: float
    body: JsonObject

    @property
    def method(self) -> str:
        return text(self.body, "method") or ""

    @property
    def tool(self) -> str:
        """The tool's name, for a call."""
        return text(member(self.body, "params"), "name") or ""

    @property
    def arguments(self) -> JsonObject:
        return member(member(self.body, "params"), "arguments")

    @property
    def id(self) -> object:
        return item(self.body, "id")


class ScriptedTools:
    """Answers requests at once, or as `intercept` says.

    Args:
        profile: Names the board.
        clock: That of the test.
        tools: In the order of the list; the profile's own without it.
    """

    def __init__(self, profile: Profile, clock: Callable[[], float], tools: tuple[Tool, ...] | None = None) -> None:
        self._clock = clock
        self._signal = ChangeSignal()
        self.board = Board()
        self._server = McpServer(profile, tools_of(profile) if tools is None else tools, self.board)
        self.requests: list[ToolRequest] = []
        self.findings: list[Finding] = []
        self.intercept: dict[str, Intercept] = {}
        """By method, or by the name of a tool."""

    def find(self, name: str, after: float = 0.0) -> list[ToolRequest]:
        """Return the requests of a method, or the calls of a tool, later than `after`."""
        return [one for one in self.requests if name in (one.method, one.tool) and one.at > after]

    async def until(self, name: str, seconds: float, count: int = 1, after: float = 0.0) -> list[ToolRequest]:
        """Wait until a method or tool was asked for so often; return the requests, fewer when time is up."""
        await self._signal.within(seconds, lambda: len(self.find(name, after)) >= count)
        return self.find(name, after)

    async def receive(self, body: JsonObject) -> str | bytes | None:
        """Return the reply's payload, None for none."""
        request = ToolRequest(self._clock(), body)
        self.requests.append(request)
        self.findings.extend(self._server.check(body))
        self._signal.notify()
        own = self.intercept.get(request.tool) or self.intercept.get(request.method)
        if own:
            return own(body)
        result = self._server.receive(body)
        if not isinstance(result, PendingCall):
            return result
        outcome, reply = await self._server.run(result)
        return None if isinstance(outcome, Restart) else reply
