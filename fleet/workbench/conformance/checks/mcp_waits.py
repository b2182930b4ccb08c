"""Group C, continued: tools that take long, or that end the device's connection."""

import asyncio

from fleet.workbench.conformance.checks.mcp import GROUP
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, turn, utter
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.tool_use import ask, is_failure, results_of, tool, tooled
from fleet.workbench.conformance.verdict import require, span
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.board_tools import Arguments, Outcome, Parameter, Tool

_LEAVES_AFTER = 0.5
_DONE_WITHIN = 30.0
_PHOTO_SECONDS = 20.0
_TURN_SECONDS = 12.0
"""In which somebody else's turn is answered, speech and the end of speech included."""


@GROUP.check("C10", "a reboot that is never answered and ends the connection counts as done", steered=True)
async def takes_silence_for_done(stage: Stage) -> str:
    devices: list[Probe] = []

    def leave(_: JsonObject) -> None:
        devices[0].spawn(_leave(devices[0]), "probe reboot")

    # A board's maker may let the model restart it; the plain firmware's tool is for users only.
    async with tooled(stage, tool("self.reboot"), intercept={"self.reboot": leave}) as probe:
        devices.append(probe)
        with stage.scene(rounds=(Round(calls=(("reboot", {}),)), Round("done"))) as scene:
            await utter(probe, scene)
            require(await probe.tools.until("self.reboot", 10.0), "the tool was not called")
            told = await stage.steering.until(lambda: len(stage.steering.asked(scene.mark)) > 1, _DONE_WITHIN)
            require(told, f"the model was told nothing within {_DONE_WITHIN:g} s")
            asked = stage.steering.asked(scene.mark)[-1]
    results = results_of(asked)
    took = asked.at - probe.tools.find("self.reboot")[0].at
    require(len(results) == 1 and not is_failure(results[0]), f"the model was told: {results}")
    return f"after {span(took)} the model was told: {results[0]}"


@GROUP.check(
    "C11", "while a photo takes 20 s nothing is said over it, and other devices are served", steered=True, seconds=90
)
async def waits_for_photos(stage: Stage) -> str:
    async def take_photo(_: Board, __: Arguments) -> Outcome:
        await asyncio.sleep(_PHOTO_SECONDS)
        return '{"success":true,"result":"a sleeping cat"}'

    camera = Tool("self.camera.take_photo", "Takes a photo.", take_photo, (Parameter("question", "string"),))
    async with tooled(stage, camera) as probe, stage.probe() as neighbour, asyncio.TaskGroup() as group:
        await neighbour.hello()
        other = group.create_task(_neighbour(stage, neighbour, probe, camera.name), name="neighbour")
        told = await ask(stage, probe, ("camera.take_photo", {"question": "What is this?"}), seconds=60.0)
        require("a sleeping cat" in told.results[0], f"the model was told: {told.results[0]}")
        begun = probe.tools.find(camera.name)[0].at
        early = [one for one in probe.audio.since(begun) if one.at < begun + _PHOTO_SECONDS]
        require(not early, f"{len(early)} packets of audio came while the photo was taken")
        took = await other
    return f"another device's turn took {span(took)} meanwhile; the model was told: {told.results[0]}"


async def _leave(probe: Probe) -> None:
    await asyncio.sleep(_LEAVES_AFTER)
    probe.line.drop()


async def _neighbour(stage: Stage, neighbour: Probe, probe: Probe, name: str) -> float:
    """Let a device have a turn while another one's tool runs; return how long that took."""
    require(await probe.tools.until(name, 20.0), "the tool was not called")
    with stage.scene() as scene:
        begun = neighbour.clock()
        await turn(neighbour, scene)
        took = neighbour.clock() - begun
    require(took < _TURN_SECONDS, f"another device's turn took {took:.1f} s while the photo was taken")
    return took
