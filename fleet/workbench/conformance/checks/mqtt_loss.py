"""Group M, continued: connections that are lost while the server speaks."""

import asyncio

from fleet.workbench.conformance.checks.mqtt import GROUP
from fleet.workbench.conformance.context import CheckContext, speaking
from fleet.workbench.conformance.verdict import Failed, require, span
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.received import ReceivedMessage

_KEEPALIVE = 4
_MERCY = 22.0
"""Seconds beyond one and a half times the keep-alive. Mosquitto 2.0 looks every six, and does not say why a connection
ended, so that a server must leave the device the time to come back (ten seconds, and what they take)."""
_BACK = 2.0
"""Seconds after a CONNECT by which a device must know how things stand."""
_QUIET = 1.0
"""Seconds without audio after which an answer is over."""
_LONGEST = 20.0
"""Seconds after which even a server that repeats an answer has spoken."""


@GROUP.check("M6", "the session of a device that vanishes ends after one and a half times its keep-alive", steered=True)
async def reaps_the_vanished(context: CheckContext) -> str:
    limit = 1.5 * _KEEPALIVE + _MERCY
    async with context.scripted_device(connect=False) as device:
        if code := await device.connect(keepalive=_KEEPALIVE):
            raise Failed(f"the broker refused the connection with code {code}")
        await device.hello()
        with context.monologue(limit + 20.0) as scene:
            await speaking(device, scene)
            gone = device.clock()
            device.mqtt.vanish()
            device.microphone.on = False
            await asyncio.sleep(limit)
            late = await device.audio.expect(1, seconds=2.0, after=gone + limit)
            last = device.audio.datagrams[-1].at - gone
            require(
                not late, f"audio still came {span(last)} after the device had vanished, at keep-alive {_KEEPALIVE} s"
            )
            return f"audio ended {span(last)} after the device had vanished, at keep-alive {_KEEPALIVE} s"


@GROUP.check("M10", "a device whose connection was lost in an answer is not left speaking", steered=True)
async def settles_the_returned(context: CheckContext) -> str:
    async with asyncio.TaskGroup() as group:
        during = group.create_task(_return_during(context), name="return during the answer")
        after = group.create_task(_return_after(context), name="return after the answer")
    return f"back during the answer: {during.result()}; after it: {after.result()}"


async def _return_during(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        with context.monologue(8.0) as scene:
            await speaking(device, scene)
            back = await _reconnect(device, away=0.5)
            if (news := await _news(device, back)) is not None:
                return news
            going_on = device.audio.since(device.clock() - 0.5)
            require(going_on, f"neither audio nor a message within {_BACK:g} s of the CONNECT: it is left speaking")
            stop = await device.messages.expect("tts", "stop", seconds=15.0, after=back)
            return f"audio went on, `tts stop` {span(stop.at - back)} after the CONNECT"


async def _return_after(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        with context.monologue(3.0) as scene:
            await speaking(device, scene)
            device.mqtt.drop()
            async with asyncio.timeout(_LONGEST):
                while await device.audio.expect(1, seconds=_QUIET, after=device.clock()):
                    pass
            back = await _reconnect(device, away=0.5)
            news = await _news(device, back)
            require(news, f"no `tts stop` within {_BACK:g} s of a CONNECT after the answer was over")
            return str(news)


async def _reconnect(device: ScriptedDevice, away: float) -> float:
    device.mqtt.drop()
    await asyncio.sleep(away)
    back = device.clock()
    if code := await device.connect():
        raise Failed(f"the broker refused the new connection with code {code}")
    return back


async def _news(device: ScriptedDevice, back: float) -> str | None:
    """Return the message that settled the state of the device within the limit, None without one."""

    def settling() -> list[ReceivedMessage]:
        kinds = (("tts", "stop"), ("goodbye", ""), ("hello", ""))
        return [one for kind, state in kinds for one in device.messages.find(kind, state, after=back)]

    if not await device.messages.until(lambda: bool(settling()), back + _BACK - device.clock()):
        return None
    first = min(settling(), key=lambda message: message.at)
    return f"`{' '.join(filter(None, (first.kind, first.state)))}` {span(first.at - back)} after the CONNECT"
