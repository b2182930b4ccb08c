"""Group M, continued: connections that are lost while the server speaks."""

import asyncio

from fleet.workbench.conformance.checks.mqtt import GROUP
from fleet.workbench.conformance.probe.mail import Message
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, speaking
from fleet.workbench.conformance.verdict import Failed, require, span

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
async def reaps_the_vanished(stage: Stage) -> str:
    limit = 1.5 * _KEEPALIVE + _MERCY
    async with stage.probe(connect=False) as probe:
        if code := await probe.connect(keepalive=_KEEPALIVE):
            raise Failed(f"the broker refused the connection with code {code}")
        await probe.hello()
        with stage.monologue(limit + 20.0) as scene:
            await speaking(probe, scene)
            gone = probe.clock()
            probe.line.vanish()
            probe.microphone.on = False
            await asyncio.sleep(limit)
            late = await probe.audio.expect(1, seconds=2.0, after=gone + limit)
            last = probe.audio.datagrams[-1].at - gone
            require(
                not late, f"audio still came {span(last)} after the device had vanished, at keep-alive {_KEEPALIVE} s"
            )
            return f"audio ended {span(last)} after the device had vanished, at keep-alive {_KEEPALIVE} s"


@GROUP.check("M10", "a device whose connection was lost in an answer is not left speaking", steered=True)
async def settles_the_returned(stage: Stage) -> str:
    async with asyncio.TaskGroup() as group:
        during = group.create_task(_return_during(stage), name="return during the answer")
        after = group.create_task(_return_after(stage), name="return after the answer")
    return f"back during the answer: {during.result()}; after it: {after.result()}"


async def _return_during(stage: Stage) -> str:
    async with stage.probe() as probe:
        await probe.hello()
        with stage.monologue(8.0) as scene:
            await speaking(probe, scene)
            back = await _reconnect(probe, away=0.5)
            if (news := await _news(probe, back)) is not None:
                return news
            going_on = probe.audio.since(probe.clock() - 0.5)
            require(going_on, f"neither audio nor a message within {_BACK:g} s of the CONNECT: it is left speaking")
            stop = await probe.mail.expect("tts", "stop", seconds=15.0, after=back)
            return f"audio went on, `tts stop` {span(stop.at - back)} after the CONNECT"


async def _return_after(stage: Stage) -> str:
    async with stage.probe() as probe:
        await probe.hello()
        with stage.monologue(3.0) as scene:
            await speaking(probe, scene)
            probe.line.drop()
            async with asyncio.timeout(_LONGEST):
                while await probe.audio.expect(1, seconds=_QUIET, after=probe.clock()):
                    pass
            back = await _reconnect(probe, away=0.5)
            news = await _news(probe, back)
            require(news, f"no `tts stop` within {_BACK:g} s of a CONNECT after the answer was over")
            return str(news)


async def _reconnect(probe: Probe, away: float) -> float:
    probe.line.drop()
    await asyncio.sleep(away)
    back = probe.clock()
    if code := await probe.connect():
        raise Failed(f"the broker refused the new connection with code {code}")
    return back


async def _news(probe: Probe, back: float) -> str | None:
    """Return what told the device how things stand within the limit, None if nothing did."""

    def settling() -> list[Message]:
        kinds = (("tts", "stop"), ("goodbye", ""), ("hello", ""))
        return [one for kind, state in kinds for one in probe.mail.find(kind, state, after=back)]

    if not await probe.mail.until(lambda: bool(settling()), back + _BACK - probe.clock()):
        return None
    first = min(settling(), key=lambda message: message.at)
    return f"`{' '.join(filter(None, (first.kind, first.state)))}` {span(first.at - back)} after the CONNECT"
