"""Group C, continued: tools that take long, or that end the device's connection."""

import asyncio

from fleet.workbench.conformance.checks.mcp import GROUP
from fleet.workbench.conformance.context import CheckContext, turn, utter
from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.tool_use import ask, is_failure, results_of, tool, tooled
from fleet.workbench.conformance.verdict import require, span
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Tool

_RESTARTS = "self.system.reconfigure_wifi"
_LEAVES_AFTER = 0.5
_DONE_WITHIN = 30.0
_PHOTO_SECONDS = 20.0
_TURN_SECONDS = 12.0
"""In which somebody else's turn is answered, speech and the end of speech included."""


@GROUP.check("C10", "a restart that is never answered and ends the connection counts as done", steered=True)
async def takes_silence_for_done(context: CheckContext) -> str:
    devices: list[ScriptedDevice] = []

    def leave(_: JsonObject) -> None:
        devices[0].spawn(_leave(devices[0]), "device restarts")

    # Firmware restarts for its Wi-Fi page without an answer; its `self.reboot` is for users only.
    async with tooled(context, tool(_RESTARTS), intercept={_RESTARTS: leave}) as device:
        devices.append(device)
        with context.scene(rounds=(Round(calls=(("system.reconfigure_wifi", {}),)), Round("done"))) as scene:
            await utter(device, scene)
            require(await device.tools.until(_RESTARTS, 10.0), "the tool was not called")

            def answers() -> list[Asked]:
                # A server may ask the model before the turn is committed, and once more after it.
                return [one for one in context.steering.asked(scene.mark) if results_of(one)]

            require(
                await context.steering.until(lambda: bool(answers()), _DONE_WITHIN),
                f"the model was told nothing within {_DONE_WITHIN:g} s",
            )
            asked = answers()[-1]
    results = results_of(asked)
    took = asked.at - device.tools.find(_RESTARTS)[0].at
    require(len(results) == 1 and not is_failure(results[0]), f"the model was told: {results}")
    return f"after {span(took)} the model was told: {results[0]}"


@GROUP.check(
    "C11", "while a photo takes 20 s nothing is said over it, and other devices are served", steered=True, seconds=90
)
async def waits_for_photos(context: CheckContext) -> str:
    async def take_photo(_: Board, __: Arguments) -> Outcome:
        await asyncio.sleep(_PHOTO_SECONDS)
        return '{"success":true,"result":"a sleeping cat"}'

    camera = Tool("self.camera.take_photo", "Takes a photo.", take_photo, (Parameter("question", "string"),))
    async with tooled(context, camera) as device, context.scripted_device() as neighbour, asyncio.TaskGroup() as group:
        await neighbour.hello()
        other = group.create_task(_neighbour(context, neighbour, device, camera.name), name="neighbour")
        told = await ask(context, device, ("camera.take_photo", {"question": "What is this?"}), seconds=60.0)
        require("a sleeping cat" in told.results[0], f"the model was told: {told.results[0]}")
        begun = device.tools.find(camera.name)[0].at
        early = [one for one in device.audio.since(begun) if one.at < begun + _PHOTO_SECONDS]
        require(not early, f"{len(early)} packets of audio came while the photo was taken")
        took = await other
    return f"another device's turn took {span(took)} meanwhile; the model was told: {told.results[0]}"


async def _leave(device: ScriptedDevice) -> None:
    await asyncio.sleep(_LEAVES_AFTER)
    device.mqtt.drop()


async def _neighbour(context: CheckContext, neighbour: ScriptedDevice, device: ScriptedDevice, name: str) -> float:
    """Let a device have a turn while another one's tool runs; return how long that took."""
    require(await device.tools.until(name, 20.0), "the tool was not called")
    with context.scene() as scene:
        begun = neighbour.clock()
        await turn(neighbour, scene)
        took = neighbour.clock() - begun
    require(took < _TURN_SECONDS, f"another device's turn took {took:.1f} s while the photo was taken")
    return took
