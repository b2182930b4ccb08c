"""Synthesises the clips of announcements, beside the answers of sessions."""

import asyncio
import logging
from collections import Counter
from contextlib import aclosing, suppress
from itertools import count
from typing import Final

from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.ground.errors import FleetError, Overloaded, Unavailable
from fleet.ground.metrics import announcements as counted
from fleet.roles.edge.services import EdgeServices
from fleet.wire.edge_messages import MakeClipCommand
from fleet.wire.messages import AudioFormat
from fleet.wire.ogg import write_ogg

log = logging.getLogger(__name__)

AUDIO: Final = AudioFormat(24_000, 60)
"""Of all clips: firmware plays any rate; with 60 ms a packet its queue of 20 holds 1.2 s."""
MOST_WAITING: Final = 32
"""Clips of one edge that are wanted at a time; they are made one after the other, so that users' answers come first.
Of more, the newest one of the tenant that wants most is not made."""
SECONDS: Final = 60.0
"""Longest time for one clip."""
_LONGEST: Final = 2_000
"""Packets: two minutes."""


class ClipMaker:
    """Makes clips, one after the other. Tenants take turns, so that one that wants many delays others by one clip.

    Args:
        services: Of the edge.
    """

    def __init__(self, services: EdgeServices) -> None:
        self._services = services
        self._wanted: dict[str, MakeClipCommand] = {}
        """By clip, in the order in which they came; the one that is made now is among them."""
        self._turns: dict[int, int] = {}
        """Number of the last turn of each tenant, since no clip was wanted."""

    def take(self, command: MakeClipCommand) -> None:
        """Have a clip made in the background; one that is wanted already is not made twice."""
        clips, idle = self._services.clips, not self._wanted
        if clips is None or command.clip in self._wanted:
            return
        self._wanted[command.clip] = command
        if idle:
            self._services.tasks.start("clips", self._make_all(clips))
        if len(self._wanted) > MOST_WAITING:
            refused = self._newest_of_the_greediest()
            del self._wanted[refused]
            self._services.tasks.start("clip refused", _fail(clips, refused, "too many clips are wanted"))

    def _newest_of_the_greediest(self) -> str:
        """Return the clip that gives way: of the tenant that wants most; of equals, of the one that came last."""
        wants = Counter(command.tenant for command in self._wanted.values())
        newest = reversed(self._wanted.values())
        return max(newest, key=lambda command: wants[command.tenant]).clip

    async def _make_all(self, clips: Clips) -> None:
        try:
            for turn in count(1):
                if not self._wanted:
                    return
                command = min(self._wanted.values(), key=lambda command: self._turns.get(command.tenant, 0))
                self._turns[command.tenant] = turn
                await self._make(clips, command)
                self._wanted.pop(command.clip, None)
        finally:
            self._wanted.clear()
            self._turns.clear()

    async def _make(self, clips: Clips, command: MakeClipCommand) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            if (await clips.find(command.clip)).ms:
                return  # another edge was faster
            async with asyncio.timeout(SECONDS):
                packets = await self._synthesise(command)
            made = Clip(write_ogg(packets, AUDIO), len(packets) * round(AUDIO.frame_ms))
            if not packets or not await clips.put(command.clip, made):
                raise Overloaded("there is no sound, or too much of it")
        except (FleetError, TimeoutError) as error:
            await _fail(clips, command.clip, str(error) or "the voice is too slow")
        else:
            counted.clips.add("made")
            about = {"clip": command.clip, "ms": made.ms, "seconds": round(clock() - began, 2)}
            log.info("clip made", extra=about)

    async def _synthesise(self, command: MakeClipCommand) -> list[bytes]:
        speakers = (await self._services.agents.find(command.agent)).speakers
        made: list[bytes] = []
        async with aclosing(self._services.voice.packets(command.text, command.language, AUDIO, *speakers)) as pieces:
            async for packets in pieces:
                made += packets
                if len(made) > _LONGEST:
                    raise Overloaded("the text is too long")
        return made


async def _fail(clips: Clips, clip: str, reason: str) -> None:
    log.warning("clip not made", extra={"clip": clip, "reason": reason})
    counted.clips.add("failed")
    with suppress(Unavailable):
        await clips.fail(clip, reason)
