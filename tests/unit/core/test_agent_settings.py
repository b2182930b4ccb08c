from dataclasses import dataclass

from fleet.core.agent_settings import chosen_persona, llm_options, override, persona_of, voice_options
from fleet.core.ports import USUAL, LlmOptions, VoiceOptions
from fleet.core.server_tools import Persona
from fleet.wire.agents import AgentDocument, ChatChoice, VoiceChoice


@dataclass(frozen=True)
class Slice:
    prompt: str | None = "usual"
    history_messages: int = 20
    tool_seconds: float = 10.0


def test_a_document_that_sets_nothing_changes_nothing() -> None:
    usual = Slice()
    assert override(usual, AgentDocument()) is usual
    assert override(usual, AgentDocument(prompt=None)) is usual
    assert (llm_options(AgentDocument()), voice_options(AgentDocument())) == (USUAL, VoiceOptions("", 1.0))
    assert persona_of(AgentDocument(), Persona("en", "Ann")) == Persona("en", "Ann")


def test_a_field_takes_the_place_of_the_setting_of_its_name() -> None:
    assert override(Slice(), AgentDocument(prompt="p", history_messages=0)) == Slice("p", 0)
    assert llm_options(AgentDocument(chat=ChatChoice(temperature=0.0))) == LlmOptions(0.0)
    assert voice_options(AgentDocument(voice=VoiceChoice(speed=1.5))) == VoiceOptions("", 1.5)


def test_a_user_may_choose_another_persona() -> None:
    document = AgentDocument(language="zh", character="Ann")
    assert persona_of(document, Persona()) == Persona("zh", "Ann")
    assert persona_of(document, Persona("en", "Bob")) == Persona("en", "Bob")
    assert persona_of(AgentDocument(language="auto"), Persona()) == Persona()


def test_only_what_the_user_chose_is_kept_with_the_conversation() -> None:
    document = AgentDocument(language="zh", character="Ann")
    assert chosen_persona(document, Persona("zh", "Ann")) == Persona()
    assert chosen_persona(document, Persona("en", "Ann")) == Persona("en")
