"""Group C, continued: errors with a code, as firmware 2.5 and py-xiaozhi send them, and the tools for users only."""

from fleet.workbench.conformance.checks.mcp import GROUP
from fleet.workbench.conformance.context import CheckContext, discovered
from fleet.workbench.conformance.tool_use import ask, is_failure, number_of, tool, tooled
from fleet.workbench.conformance.verdict import require
from fleet.workbench.sim.messages.message import item, member
from fleet.workbench.sim.tools import mcp_server

__all__ = ["GROUP"]

_ERRORS = (
    ("type", -32602, "Invalid type for argument: level"),
    ("range", -32602, "Value exceeds maximum allowed: 100"),
    ("method", -32601, "Method not implemented: tools/call"),
    ("inside", -32603, "Failed to capture photo"),
)
"""Of firmware 2.5 (main/mcp_server.cc at 77500b8)."""


@GROUP.check("C14", "a tool's error with a code reaches the model as text", profiles="P8 P9", steered=True)
async def tells_coded_errors(context: CheckContext) -> str:
    tools = [tool(f"self.stage.{name}") for name, _, _ in _ERRORS]
    calls = {
        f"self.stage.{name}": lambda request, code=code, words=words: mcp_server.error(number_of(request), words, code)
        for name, code, words in _ERRORS
    }
    async with tooled(context, *tools, intercept=calls) as device:
        told = await ask(context, device, *((f"stage.{name}", {}) for name, _, _ in _ERRORS))
        for (name, code, words), said in zip(_ERRORS, told.results, strict=True):
            require(words in said and is_failure(said), f"of the error {code} of {name} the model was told: {said}")
            require(len(device.tools.find(f"self.stage.{name}")) == 1, f"{name} was called again after its error")
        return f"the model was told: {'; '.join(told.results)}"


@GROUP.check("C15", "a device is not asked for its tools for users only")
async def asks_for_the_models_tools(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        await discovered(device)
        lists = device.tools.find("tools/list")
        asked = [one for one in lists if item(member(one.body, "params"), "withUserTools") is True]
        require(not asked, "asked with withUserTools true")
        return f"{len(lists)} requests without withUserTools"
