"""Requests to the device's tools: answered at once or run, one by one, on the main loop (contract 6)."""

import asyncio
from functools import partial
from typing import Protocol

from fleet.workbench.sim.firmware.application import Application
from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.firmware.upgrade import install, running_profile
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.messages.message import JsonObject, text
from fleet.workbench.sim.network.malformed import BAD_ERROR
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall
from fleet.workbench.sim.tools.tool import Outcome, Restart


class ToolHost(DeviceParts, Protocol):
    """The parts, the application, and what restarts them."""

    application: Application

    async def restart(self) -> None:
        """Say goodbye, and restart."""


class ToolRunner:
    """Takes the payload of every `mcp` message.

    Args:
        context: What the device keeps over a restart.
        host: The parts.
    """

    def __init__(self, context: DeviceContext, host: ToolHost) -> None:
        self._context = context
        self._host = host
        self._journal = context.journal
        self._server = McpServer(running_profile(context), tools_of(context.profile), context.board)

    def receive(self, request: JsonObject) -> None:
        """Take a request; arguments are checked at once, calls wait for the main loop."""
        self._journal.judge(self._server.check(request))
        self._journal.count("mcp_requests")
        result = self._server.receive(request)
        if isinstance(result, PendingCall):
            self._host.main_loop.schedule(partial(self._run, result))
        elif result is not None:
            self._journal.note("mcp", method=text(request, "method"))
            self._host.main_loop.schedule(partial(self._reply, result))

    async def _run(self, call: PendingCall) -> None:
        began, timing = self._journal.clock(), self._context.profile.timing
        takes = self._context.draw(timing.photo if call.tool.slow else timing.tool)
        outcome, reply = await self._outcome(call)
        await asyncio.sleep(max(0.0, began + takes - self._journal.clock()))
        # A broken name of the Wi-Fi must not break the report.
        readable = reply.encode("utf-8", "replace").decode()
        self._journal.note("tool call", name=call.tool.name, args=dict(call.arguments), reply=readable)
        if self._context.turns.open:
            self._context.turns.open.calls.append(call.tool.name)
        # What restarts the device is queued before the answer, which so never leaves.
        if isinstance(outcome, Restart):
            self._host.main_loop.schedule(partial(self._restart, outcome))
        self._host.main_loop.schedule(partial(self._reply, reply))

    async def _outcome(self, call: PendingCall) -> tuple[Outcome, str]:
        try:
            if self._context.network.happens(self._context.faults.tool_errors):
                return None, self._server.fail_call(call.id, BAD_ERROR)
            return await self._server.run(call)
        finally:
            self._journal.judge(self._context.board.findings)
            self._context.board.findings.clear()

    async def _reply(self, reply: str) -> None:
        await self._host.channel.send(outbound.mcp(self._host.channel.session, reply))

    async def _restart(self, ordered: Restart) -> None:
        if ordered.firmware:
            # The conversation ends before the download.
            await self._host.application.hang_up(say_goodbye=True)
            if not await install(ordered.firmware, self._context):
                return
        await self._host.restart()
