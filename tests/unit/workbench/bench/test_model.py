from fleet.core.ports import CallsAsked, LlmEvent, Message, TextDelta, ToolOffer
from fleet.workbench.bench.model import ScriptedModel, words

OFFERS = [ToolOffer("self_audio_speaker_set_volume", "Sets the volume.")]


async def answer(model: ScriptedModel, *messages: Message) -> list[LlmEvent]:
    return [event async for event in model.stream(messages, OFFERS)]


async def test_model_asks_for_as_many_calls_as_were_said_and_then_answers() -> None:
    waited: list[float] = []
    model, said = ScriptedModel(waited), Message("user", words(2, "turn-1"))
    [asked] = await answer(model, said)
    assert isinstance(asked, CallsAsked)
    assert [call.name for call in asked.calls] == [OFFERS[0].name] * 2
    assert len({call.id for call in asked.calls}) == 2
    outcomes = [Message("tool", "true", call_id=call.id) for call in asked.calls]
    told = await answer(model, said, Message("assistant", "", asked.calls), *outcomes)
    assert all(isinstance(event, TextDelta) for event in told)
    assert len(waited) == 1


async def test_model_answers_at_once_when_no_call_was_said() -> None:
    waited: list[float] = []
    told = await answer(ScriptedModel(waited), Message("user", words(0, "turn-2")))
    assert told
    assert all(isinstance(event, TextDelta) for event in told)
    assert not waited
