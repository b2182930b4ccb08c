"""Group C, continued: a device that is asked before its tools are known."""

import asyncio

from fleet.workbench.conformance.checks.mcp import GROUP
from fleet.workbench.conformance.context import CheckContext, answered, utter
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.tool_use import is_offered, page, tool
from fleet.workbench.conformance.verdict import Failed, require, span
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.tools import ScriptedTools

_LATE = 1.0
_NEVER = 8.0
"""The longest that a turn may wait for a list that does not come, the way to the model included."""


@GROUP.check("C16", "a turn right after the connection waits a moment for the device's tools", steered=True)
async def waits_for_tools(context: CheckContext) -> str:
    took = await _ask_early(context, _LATE)
    without = await _ask_early(context, None)
    return (
        f"a list that came {span(_LATE)} late was offered ({span(took)}); without any the model waited {span(without)}"
    )


async def _ask_early(context: CheckContext, late: float | None) -> float:
    """Ask a device whose list comes so long after `stt`, or never; return from `stt` to the model's request."""
    light = tool("self.stage.light")
    asked_for: list[JsonObject] = []
    async with context.scripted_device(connect=False) as device:
        device.tools = ScriptedTools(device.profile, device.clock, (light,))
        device.tools.intercept["tools/list"] = asked_for.append
        if code := await device.connect():
            raise Failed(f"the broker refused the connection with code {code}")
        await device.hello()
        require(await device.tools.until("tools/list", 5.0), "the device was not asked for its tools")
        with context.scene(rounds=(Round("done"),)) as scene:
            since = await utter(device, scene)
            heard = await device.messages.expect("stt", seconds=10.0, after=since)
            if late is not None:
                await asyncio.sleep(max(0.0, heard.at + late - device.clock()))
                _list(device, asked_for, page(asked_for[0], light))
            came = await context.steering.until(lambda: context.steering.asked(scene.mark), _NEVER)
            require(came, f"the model was not asked within {_NEVER:g} s")
            [asked, *_] = context.steering.asked(scene.mark)
            await answered(device, since)
    if late is not None:
        require(is_offered("stage.light", asked), "the model was asked without the device's tools")
    return asked.at - heard.at


def _list(device: ScriptedDevice, asked_for: list[JsonObject], reply: str) -> None:
    require(len(asked_for) == 1, "the device was asked for its tools twice at a time")
    device.send(outbound.mcp(device.session, reply))
