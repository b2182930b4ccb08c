"""Synthesises the clips of announcements, beside the answers of sessions."""

import asyncio
import logging
from contextlib import aclosing
from typing import Final

from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.ground.errors import FleetError, Overloaded
from fleet.ground.metrics import announcements as counted
from fleet.roles.edge.services import EdgeServices
from fleet.wire.edge_messages import MakeClipCommand
from fleet.wire.messages import AudioFormat
from fleet.wire.ogg import write_ogg

log = logging.getLogger(__name__)

AUDIO: Final = AudioFormat(24_000, 60)
"""Of all clips: firmware plays any rate; with 60 ms a packet its queue of 20 holds 1.2 s."""
MOST_WAITING: Final = 32
"""Clips of one edge that are wanted at a time; they are made one after the other, so that users' answers come first."""
SECONDS: Final = 60.0
"""Longest time for one clip."""
_LONGEST: Final = 2_000
"""Packets: two minutes."""


class ClipMaker:
    """Makes clips.

    Args:
        services: Of the edge.
    """

    def __init__(self, services: EdgeServices) -> None:
        self._services = services
        self._turn = asyncio.Lock()
        self._waiting = 0

    def take(self, command: MakeClipCommand) -> None:
        """Begin to make a clip in the background."""
        if self._services.clips is not None:
            self._services.tasks.start("clip", self._make(self._services.clips, command))

    async def _make(self, clips: Clips, command: MakeClipCommand) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        self._waiting += 1
        try:
            if self._waiting > MOST_WAITING:
                raise Overloaded("too many clips are wanted")
            async with self._turn, asyncio.timeout(SECONDS):
                packets = await self._synthesise(command)
            made = Clip(write_ogg(packets, AUDIO), len(packets) * round(AUDIO.frame_ms))
            if not packets or not await clips.put(command.clip, made):
                raise Overloaded("there is no sound, or too much of it")
        except (FleetError, TimeoutError) as error:
            log.warning("clip not made", extra={"clip": command.clip, "reason": str(error) or "too slow"})
            counted.clips.add("failed")
            await clips.fail(command.clip, str(error) or "the voice is too slow")
        else:
            counted.clips.add("made")
            about = {"clip": command.clip, "ms": made.ms, "seconds": round(clock() - began, 2)}
            log.info("clip made", extra=about)
        finally:
            self._waiting -= 1

    async def _synthesise(self, command: MakeClipCommand) -> list[bytes]:
        speakers = (await self._services.agents.find(command.agent)).speakers
        made: list[bytes] = []
        async with aclosing(self._services.voice.packets(command.text, command.language, AUDIO, *speakers)) as pieces:
            async for packets in pieces:
                made += packets
                if len(made) > _LONGEST:
                    raise Overloaded("the text is too long")
        return made
