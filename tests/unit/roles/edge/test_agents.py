"""What an agent changes in a session that is open, on an edge that goes on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.core.ports import Asr, Tts, VoiceOptions
from fleet.ground.errors import ConfigError
from fleet.roles.edge.agents import SessionAgent
from fleet.wire.agents import AgentDocument, CompiledAgent
from tests.support.edge_stage import Device, ScriptedAsr, Stage, on_stage
from tests.support.memory_store import memory_store


class Speech:
    """Speech engines of agents: their recogniser hears "other", and their voice has a name."""

    def __init__(self) -> None:
        self.asr = ScriptedAsr()
        self.asr.script.extend(["other"] * 9)
        self.fault: ConfigError | None = None

    async def find_asr(self, agent: CompiledAgent) -> Asr:
        if self.fault:
            raise self.fault
        return self.asr  # type: ignore[return-value]

    async def find_tts(self, agent: CompiledAgent) -> tuple[Tts, str]:
        if self.fault:
            raise self.fault
        return "engine", agent.document.voice.model or ""  # type: ignore[return-value]


class Site:
    """An edge with a session, and the agent of all devices."""

    def __init__(self, stage: Stage, documents: KnownAgents, device: Device) -> None:
        self.stage, self.device = stage, device
        self._documents = documents
        self._version = 0

    @property
    def agent(self) -> SessionAgent:
        [session] = self.stage.edge._registry
        return session.parts.transport.agent

    async def publish(self, **fields: Any) -> CompiledAgent:
        """Publish the next version, and tell the edge; return when it counts."""
        self._version += 1
        document = AgentDocument.model_validate(fields)
        agent = CompiledAgent(id="1", version=self._version, document=document)
        await self._documents.compiled.publish([agent])
        await self._documents.compiled.set_usual("1")
        await self.stage.send("agents_changed", session="")
        await self.stage.until(lambda: self.agent.current.digest == agent.digest)
        return agent

    async def ask(self, **answer: Any) -> None:
        """Have an utterance answered."""
        count = len(self.stage.utterances()) + 1
        await self.stage.listen("auto")
        self.device.say()
        turn = (await self.stage.heard(count)).turn
        await self.stage.send("speech_begun", turn=turn)
        await self.stage.send("sentence_ready", turn=turn, index=0, text=f"Answer {count}.", language="en", **answer)
        await self.stage.send("speech_ended", turn=turn, index=1)
        await self.stage.until(lambda: self.stage.kinds().count("speech_done") == count)


@asynccontextmanager
async def site(speech: Speech | None = None, **settings: Any) -> AsyncIterator[Site]:
    documents = KnownAgents(await memory_store(shards=1))
    async with on_stage(documents=documents, speech=speech, **settings) as stage:
        yield Site(stage, documents, await stage.open())


async def test_recognition_language_and_voice_are_the_agents_from_the_next_turn_on() -> None:
    speech = Speech()
    async with site(speech) as one:
        await one.ask()
        assert one.stage.utterances()[-1].text == "hello" and one.stage.voice.speakers == [None]
        await one.publish(language="zh", voice={"name": "zm_yunxi", "speed": 1.5})
        await one.ask()
        assert one.stage.utterances()[-1].text == "other" and speech.asr.languages[-1] == "zh"
        speaker = one.stage.voice.speakers[-1]
        assert speaker and (speaker.tts, speaker.options) == ("engine", VoiceOptions("zm_yunxi", 1.5))
        await one.publish(voice={"model": "m"})
        await one.ask()
        speaker = one.stage.voice.speakers[-1]
        assert speaker and speaker.engine == "m"


async def test_the_recogniser_is_told_which_language_to_expect() -> None:
    async with site() as one:
        one.stage.asr.language = "de"
        await one.ask()
        await one.ask()
        assert one.stage.asr.expected == ["", "de"], "that of the utterance before"


async def test_a_sentence_is_spoken_in_the_voice_of_the_agent_of_its_turn() -> None:
    async with site(Speech()) as one:
        old = await one.publish(voice={"name": "old"})
        await one.publish(voice={"name": "new"})
        await one.ask(agent=old.digest)
        await one.ask(agent="")
        await one.ask()
        names = [speaker and speaker.options.name for speaker in one.stage.voice.speakers]
        assert names == ["old", None, "new"]


async def test_an_engine_that_cannot_be_opened_leaves_that_of_the_settings() -> None:
    speech = Speech()
    speech.fault = ConfigError("no such plugin")
    async with site(speech) as one:
        await one.publish(voice={"name": "any"})
        await one.ask()
        assert one.stage.utterances()[-1].text == "hello" and one.stage.voice.speakers == [None]


async def test_the_times_of_a_session_change_while_it_is_open() -> None:
    async with site(idle_seconds=60, filler_seconds=0) as one:
        waits = {"endpoint_ms": 220, "pause_ms": 300}
        await one.publish(filler_seconds=0.05, interruption="off", **waits)
        await one.stage.listen("auto")
        one.device.say()
        await one.stage.heard()
        await one.stage.until(lambda: bool(one.stage.voice.spoken))
        assert one.stage.voice.spoken == ["One moment."]
        assert one.agent.current.rules.sensitivity == "off"
        assert one.agent.settings.endpoint_ms == 220


async def test_a_silent_session_ends_after_the_agents_time() -> None:
    async with site(idle_seconds=100) as one:
        await one.publish(idle_seconds=10)
        await one.stage.listen("auto")
        one.stage.pass_time(11)
        await one.stage.until(lambda: one.stage.kinds() == ["session_silent"])


async def test_a_session_learns_its_agent_from_the_answer_if_the_news_was_lost() -> None:
    async with site() as one:
        agent = await one.publish(idle_seconds=10)
        one.agent.adopt("")
        turn = "t1"
        await one.stage.send("speech_begun", turn=turn, agent=agent.digest)
        assert one.agent.settings.idle_seconds == 10
