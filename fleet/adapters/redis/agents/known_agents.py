"""The agents that this process has read, by the digest of their content, which never changes."""

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from pydantic import ValidationError

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.wire.agents import NO_AGENT, CompiledAgent

log = logging.getLogger(__name__)

MOST_KNOWN: Final = 256
"""Agents in memory; the least recently used one is read again when it is needed."""


class KnownAgents:
    """Finds agents; only the first use of a digest asks Redis.

    Args:
        store: Redis.
        most: Agents that are kept.
    """

    def __init__(self, store: Store, most: int = MOST_KNOWN) -> None:
        self.compiled = CompiledAgents(store)
        self._most = most
        self._known: OrderedDict[str, CompiledAgent] = OrderedDict()
        self.remembers = False
        """Whether one of them had a memory."""
        self._of_site = NO_AGENT

    async def of_site(self, seconds: float) -> CompiledAgent:
        """Return the agent of everyone who is no device; as it was last read if Redis does not answer in this time."""
        try:
            async with asyncio.timeout(seconds):
                self._of_site = await self.find(await self.compiled.of_site())
        except (Unavailable, TimeoutError) as error:
            log.warning("agent not read", extra={"reason": str(error) or "no answer in time"})
        return self._of_site

    async def find(self, digest: str) -> CompiledAgent:
        """Return an agent; the settings alone for an empty digest, and for one without a readable document.

        Raises:
            Unavailable: Redis does not answer.
        """
        if not digest:
            return NO_AGENT
        if known := self._known.get(digest):
            self._known.move_to_end(digest)
            return known
        text = await self.compiled.document(digest)
        try:
            found = CompiledAgent.model_validate_json(text or "")
        except ValidationError as error:
            about = {"digest": digest, "missing": text is None, "faults": error.error_count()}
            log.error("agent not readable", extra=about)  # noqa: TRY400 - the fault may hold the whole document
            return NO_AGENT
        self._known[digest] = found
        self.remembers = self.remembers or found.document.memory == "on"
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return found
