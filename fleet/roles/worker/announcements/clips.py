"""Has the clip of a text made, once for each voice, whoever asks."""

import asyncio
import hashlib
import json
import logging
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import ProviderError
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.wire.agents import CompiledAgent
from fleet.wire.announcements import DeviceAnnouncement
from fleet.wire.edge_messages import MakeClipCommand

log = logging.getLogger(__name__)

SECONDS: Final = 90.0
"""Longest wait for a clip."""
_LOOK_SECONDS: Final = 0.2
KNOWN_SECONDS: Final = 10.0
"""How long a clip that was found is not looked for again: its life is much longer, and thousands of devices want it."""
_MOST_KNOWN: Final = 256


class _Made(NamedTuple):
    clip: str
    ms: int
    until: float


class ClipOrders:
    """Orders clips from edges.

    Args:
        clips: The clips in Redis.
        agents: Of the devices, whose voices speak.
        directory: The live edges.
        inboxes: Of the edges.
    """

    def __init__(self, clips: Clips, agents: KnownAgents, directory: EdgeDirectory, inboxes: Inboxes) -> None:
        self._clips, self._agents, self._directory, self._inboxes = clips, agents, directory, inboxes
        self._known: dict[tuple[str, str, str], _Made] = {}
        """Clips that were there a moment ago, by agent, text and language."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One device asks for a clip at a time; the others find it made."""

    async def find(self, mac: str, announcement: DeviceAnnouncement) -> tuple[str, int]:
        """Return the id of a device's clip, and its length in ms; wait until it is made.

        Raises:
            ProviderError: It cannot be made.
            Unavailable: Redis does not answer.
        """
        (digest,) = await self._agents.compiled.of_devices([mac])
        asked = digest, announcement.text, announcement.language
        if known := self._recall(asked):
            return known.clip, known.ms
        clip = clip_of(await self._agents.find(digest), announcement)
        turn = self._turns.setdefault(clip, asyncio.Lock())
        async with turn:
            if known := self._recall(asked):
                return known.clip, known.ms
            ms = await self._wait(clip, digest, announcement)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[asked] = _Made(clip, ms, asyncio.get_running_loop().time() + KNOWN_SECONDS)
        return clip, ms

    def _recall(self, asked: tuple[str, str, str]) -> _Made | None:
        """Return a clip that was there a moment ago."""
        known = self._known.get(asked)
        return known if known is not None and asyncio.get_running_loop().time() < known.until else None

    async def _wait(self, clip: str, digest: str, announcement: DeviceAnnouncement) -> int:
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    state = await self._clips.find(clip)
                    if state.ms:
                        return state.ms
                    if state.failure:
                        raise ProviderError(state.failure, retryable=True)
                    if await self._clips.claim(clip):
                        await self._order(clip, digest, announcement)
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as error:
            raise ProviderError("no edge has made the clip", retryable=True) from error

    async def _order(self, clip: str, digest: str, announcement: DeviceAnnouncement) -> None:
        edge = self._directory.least_loaded()
        if edge is None:
            raise ProviderError("no edge is there to make the clip", retryable=True)
        log.info("clip ordered", extra={"clip": clip, "edge": edge})
        command = MakeClipCommand(
            device="",
            session="",
            clip=clip,
            text=announcement.text,
            language=announcement.language,
            agent=digest,
            tenant=announcement.tenant,
        )
        await self._inboxes.to_edge(edge, command)


def clip_of(agent: CompiledAgent, announcement: DeviceAnnouncement) -> str:
    """Return the id of the clip of a text in the voice of an agent: the same for all agents with that voice."""
    endpoint = agent.endpoints.get("voice")
    voice = [agent.document.voice.model_dump(), endpoint.model_dump() if endpoint else None]
    voiced = json.dumps([voice, announcement.text, announcement.language], sort_keys=True)
    return hashlib.sha256(voiced.encode()).hexdigest()[:32]
