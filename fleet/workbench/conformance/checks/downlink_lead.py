"""Group D, continued: how far a server may be ahead of what is heard."""

from fleet.workbench.conformance.checks.downlink import GROUP
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.judge import play
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.talk import ask, talking, understood
from fleet.workbench.conformance.verdict import require

_SECONDS = 12.0
_SMALLEST_QUEUE = 20
"""Packets, of firmware 2.5 (docs/notify.md at 77500b8); a server cannot always tell which one it speaks to."""
_SPARE = 2
"""Packets of the queue that a server leaves free: the network may bunch some."""


@GROUP.check("D13", "the server is never further ahead than the smallest queue, 20 packets, holds", steered=True)
async def modest(context: CheckContext) -> str:
    with context.monologue(_SECONDS) as long, context.scene(reply_seconds=3.0) as short:
        async with talking(context) as device:
            for scene, seconds in ((long, _SECONDS + 15), (short, 15.0)):
                answer = await ask(device, voice.say(scene.mark, 1.0), seconds=seconds)
                if scene is short:
                    understood(answer, scene)
            datagrams = device.audio.datagrams
            require(datagrams, "no datagram came")
            deepest = play(datagrams).deepest
            seen = f"queue ≤ {deepest} packets in {len(datagrams)} datagrams of two answers"
            require(deepest <= _SMALLEST_QUEUE - _SPARE, seen)
            return seen
