"""Requests to the device's tools: answered at once or run, one by one, on the main loop (contract 6)."""

import asyncio
from functools import partial
from typing import Protocol

from fleet.workbench.sim.firmware.application import Dialogue
from fleet.workbench.sim.firmware.parts import Body
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.messages.message import JsonObject, text
from fleet.workbench.sim.network.download import download
from fleet.workbench.sim.network.malformed import BAD_ERROR
from fleet.workbench.sim.runtime.context import Owner
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer, Pending
from fleet.workbench.sim.tools.tool import Outcome, Restart, ToolError


class Host(Body, Protocol):
    """The parts, the mind that moves them, and what restarts them."""

    dialogue: Dialogue

    async def restart(self) -> None:
        """Say goodbye, and restart."""


class Toolbox:
    """Takes the payload of every `mcp` message.

    Args:
        owner: What outlives a restart.
        host: The parts.
    """

    def __init__(self, owner: Owner, host: Host) -> None:
        self._owner = owner
        self._host = host
        self._journal = owner.journal
        self._server = McpServer(owner.profile, tools_of(owner.profile), owner.board)

    def receive(self, request: JsonObject) -> None:
        """Take a request; arguments are checked at once, calls wait for the main loop."""
        self._journal.judge(self._server.check(request))
        self._journal.count("mcp_requests")
        result = self._server.receive(request)
        if isinstance(result, Pending):
            self._host.main_loop.schedule(partial(self._run, result))
        elif result is not None:
            self._journal.note("mcp", method=text(request, "method"))
            self._host.main_loop.schedule(partial(self._reply, result))

    async def _run(self, call: Pending) -> None:
        began, timing = self._journal.clock(), self._owner.profile.timing
        takes = self._owner.draw(timing.photo if call.tool.slow else timing.tool)
        outcome, reply = await self._outcome(call)
        await asyncio.sleep(max(0.0, began + takes - self._journal.clock()))
        # A broken name of the Wi-Fi must not break the report.
        readable = reply.encode("utf-8", "replace").decode()
        self._journal.note("tool call", name=call.tool.name, args=dict(call.arguments), reply=readable)
        if self._owner.turns.open:
            self._owner.turns.open.calls.append(call.tool.name)
        # What restarts the device is queued before the answer, which so never leaves.
        if isinstance(outcome, Restart):
            self._host.main_loop.schedule(partial(self._restart, outcome))
        self._host.main_loop.schedule(partial(self._reply, reply))

    async def _outcome(self, call: Pending) -> tuple[Outcome, str]:
        try:
            if self._owner.network.happens(self._owner.faults.tool_errors):
                raise ToolError(BAD_ERROR)
            outcome = await call.tool.run(self._owner.board, call.arguments)
        except ToolError as error:
            return None, self._server.fail_call(call.id, str(error))
        finally:
            self._journal.judge(self._owner.board.findings)
            self._owner.board.findings.clear()
        return outcome, self._server.answer(call.id, True if isinstance(outcome, Restart) else outcome)

    async def _reply(self, reply: str) -> None:
        await self._host.channel.send(outbound.mcp(self._host.channel.session, reply))

    async def _restart(self, ordered: Restart) -> None:
        if ordered.firmware and not await self._install(ordered.firmware):
            return
        await self._host.restart()

    async def _install(self, url: str) -> bool:
        """Fetch new firmware, the conversation ended before; return whether all of it came."""
        await self._host.dialogue.hang_up(say_goodbye=True)
        found = await download(url, self._owner.board.upload_headers)
        self._journal.judge(found.findings)
        self._journal.note("firmware", url=url, bytes=len(found.content), reason=found.reason)
        return bool(found.content)
