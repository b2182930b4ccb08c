"""What the agents of devices mean on an edge: rules, recognition and voice."""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from fleet.adapters.redis.agents.known_agents import MOST_KNOWN, KnownAgents
from fleet.adapters.speech.voice import Speaker, Voice
from fleet.core.agent_settings import override, voice_options
from fleet.core.interruption import OverlapRules
from fleet.core.ports import USUAL_VOICE, Asr, Transcript, Tts
from fleet.core.text.phrases import choose_language, language_of
from fleet.ground.background import BackgroundTasks
from fleet.ground.errors import FleetError
from fleet.roles.edge.settings import EdgeSettings
from fleet.wire.agents import NO_AGENT, CompiledAgent
from fleet.wire.edge_messages import OpenSessionCommand
from fleet.wire.messages import AudioFormat

log = logging.getLogger(__name__)


class AgentSpeech(Protocol):
    """Finds the speech engines of an agent, the same for all agents with equal choices."""

    async def find_asr(self, agent: CompiledAgent) -> Asr:
        """Return the recogniser.

        Raises:
            FleetError: It cannot be opened.
        """

    async def find_tts(self, agent: CompiledAgent) -> tuple[Tts, str]:
        """Return the engine of the voice, and a name for it that no other engine has; empty for the usual one.

        Raises:
            FleetError: It cannot be opened.
        """


@dataclass(frozen=True, slots=True)
class EdgeAgent:
    """One agent on this edge."""

    digest: str
    agent: CompiledAgent
    settings: EdgeSettings
    """With the agent's fields in place of the settings."""
    rules: OverlapRules
    """For speech over answers."""
    asr: Asr
    speakers: tuple[Speaker, ...] = ()
    """Who speaks; empty for the usual voice."""

    async def transcribe(self, pcm: bytes, expected: str = "") -> Transcript:
        """See `fleet.core.ports.Asr`."""
        language = self.agent.document.language
        return await self.asr.transcribe(pcm, "" if language in (None, "auto") else language, expected)


class EdgeAgents:
    """The agents that this edge knows.

    Args:
        settings: Of the edge.
        asr: The recogniser of the settings.
        known: Their documents; None for an edge on which only the settings count.
        speech: Their speech engines.
    """

    def __init__(
        self, settings: EdgeSettings, asr: Asr, known: KnownAgents | None = None, speech: AgentSpeech | None = None
    ) -> None:
        self.usual = EdgeAgent("", NO_AGENT, settings, rules_of(settings), asr)
        """The settings alone."""
        self._documents = known
        self._speech = speech
        self._known: OrderedDict[str, EdgeAgent] = OrderedDict()

    def known(self, digest: str) -> EdgeAgent | None:
        """Return an agent if it can be had without waiting."""
        return self._known.get(digest) if digest else self.usual

    async def find(self, digest: str) -> EdgeAgent:
        """Return an agent.

        Raises:
            Unavailable: Redis does not answer.
        """
        if known := self.known(digest):
            return known
        if self._documents is None:
            return self.usual
        agent = await self._documents.find(digest)
        settings = override(self.usual.settings, agent.document)
        asr, speakers = await self._asr(agent), await self._speakers(agent)
        found = EdgeAgent(digest, agent, settings, rules_of(settings), asr, speakers)
        self._known[digest] = found
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    async def of_devices(self, macs: Sequence[str]) -> list[str]:
        """Return the digests of the agents of devices.

        Raises:
            Unavailable: Redis does not answer.
        """
        return await self._documents.compiled.of_devices(macs) if self._documents else [""] * len(macs)

    async def _asr(self, agent: CompiledAgent) -> Asr:
        try:
            return await self._speech.find_asr(agent) if self._speech else self.usual.asr
        except FleetError as error:
            log.error("agent's recognition not available", extra={"agent": agent.name, "reason": str(error)})  # noqa: TRY400
            return self.usual.asr

    async def _speakers(self, agent: CompiledAgent) -> tuple[Speaker, ...]:
        options = voice_options(agent.document)
        try:
            found = await self._speech.find_tts(agent) if self._speech else None
        except FleetError as error:
            log.error("agent's voice not available", extra={"agent": agent.name, "reason": str(error)})  # noqa: TRY400
            return ()
        if found is None or (not found[1] and options == USUAL_VOICE):
            return ()
        return (Speaker(found[0], options, found[1]),)


def rules_of(settings: EdgeSettings) -> OverlapRules:
    """Return the rules for speech over answers."""
    return OverlapRules(settings.interruption, settings.interruption_keywords.split(","))


class AgentListener(Protocol):
    """Is told when a session has another agent."""

    def agent_changed(self) -> None:
        """Do as the new agent says from now on."""


class SessionAgent:
    """The agent of one session.

    Args:
        agents: Of the edge.
        voice: Of the edge.
        tasks: Of the edge.
        opened: Has the agent with which the session began; until it is loaded, the settings alone count.
    """

    def __init__(self, agents: EdgeAgents, voice: Voice, tasks: BackgroundTasks, opened: OpenSessionCommand) -> None:
        self._agents = agents
        self._voice = voice
        self._tasks = tasks
        self.current = agents.usual
        """What counts now."""
        self.listener: AgentListener | None = None
        self._reported = opened.reported_language
        self.language = self._choose_language()
        """ISO 639-1 code of the language of fixed sentences."""
        self.expected = language_of(self._reported)
        """ISO 639-1 code of the language that the user spoke last, before that of the firmware; empty if unknown."""
        self._wanted = ""
        self.adopt(opened.agent)

    @property
    def settings(self) -> EdgeSettings:
        """The settings of this session now."""
        return self.current.settings

    @property
    def loading(self) -> bool:
        """Whether another agent will soon count."""
        return self._wanted != self.current.digest

    def adopt(self, digest: str) -> None:
        """Take an agent, at once if it is known, else as soon as it is loaded."""
        if digest == self._wanted:
            return
        self._wanted = digest
        if known := self._agents.known(digest):
            self._set(known)
        else:
            self._tasks.start("agent", self._load(digest))

    def packets(
        self, text: str, language: str, downlink: AudioFormat, agent: str | None = None
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the packets of a sentence in the voice of an agent, None for the present one; see `Voice.packets`."""
        known = self.current if agent is None else self._agents.known(agent)
        if known is None:
            return self._load_voice(text, language, downlink, agent or "")
        return self._voice.packets(text, language, downlink, *known.speakers)

    async def _load_voice(
        self, text: str, language: str, downlink: AudioFormat, agent: str
    ) -> AsyncGenerator[Sequence[bytes], None]:
        speakers = (await self._agents.find(agent)).speakers
        async with aclosing(self._voice.packets(text, language, downlink, *speakers)) as pieces:
            async for packets in pieces:
                yield packets

    async def _load(self, digest: str) -> None:
        try:
            found = await self._agents.find(digest)
        except FleetError as error:
            log.warning("agent not loaded", extra={"reason": str(error)})
            if self._wanted == digest:
                self._wanted = self.current.digest
            return
        if self._wanted == digest:
            self._set(found)

    def _set(self, agent: EdgeAgent) -> None:
        self.current, self._wanted = agent, agent.digest
        self.language = self._choose_language()
        if self.listener:
            self.listener.agent_changed()

    def _choose_language(self) -> str:
        return choose_language(self.settings.language, self.settings.languages, self._reported)
