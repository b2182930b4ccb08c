import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from fleet.core import agent
from fleet.core.agent import Progress
from fleet.core.ports import (
    USUAL,
    CallsAsked,
    LlmEvent,
    LlmOptions,
    Message,
    TextDelta,
    ThoughtDelta,
    TokensUsed,
    TokenUsage,
    ToolCall,
    ToolOffer,
)
from fleet.ground.errors import ProviderError, Unavailable

OFFER = ToolOffer("volume", "sets it")
NOTHING = Progress()


class ScriptedLlm:
    def __init__(self, *messages: Sequence[LlmEvent | ProviderError]) -> None:
        self.script = list(messages)
        self.asked: list[tuple[tuple[Message, ...], tuple[ToolOffer, ...]]] = []
        self.options: list[LlmOptions] = []
        self.closed = 0

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append((tuple(messages), tuple(tools)))
        self.options.append(options)
        try:
            for event in self.script.pop(0):
                if isinstance(event, ProviderError):
                    raise event
                yield event
        finally:
            self.closed += 1


class Tools:
    offers = (OFFER,)
    question = ""

    def __init__(self, parties: int = 1) -> None:
        self.together = asyncio.Barrier(parties)
        self.called: list[str] = []

    async def call(self, call: ToolCall) -> str:
        self.called.append(call.id)
        await self.together.wait()
        return f"done {call.id}"


class Output:
    def __init__(self) -> None:
        self.steps: list[int] = []
        self.said: list[str] = []
        self.thoughts: list[str] = []
        self.usage = TokenUsage()

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def think(self, text: str) -> None:
        self.thoughts.append(text)

    def spend(self, usage: TokenUsage) -> None:
        self.usage += usage

    async def record(self, messages: Sequence[Message]) -> None:
        self.steps.append(len(messages))


async def run(
    llm: ScriptedLlm, tools: Tools | None = None, before: Progress = NOTHING, options: LlmOptions = USUAL
) -> tuple[tuple[Message, ...], str, list[int]]:
    output = Output()
    async with asyncio.timeout(5):
        added = await agent.run_turn([Message("user", "hi")], llm, tools or Tools(), output, before, options)
    return added, "".join(output.said), output.steps


async def test_an_answer_without_calls_ends_the_turn() -> None:
    added, said, steps = await run(ScriptedLlm([TextDelta("Hel"), TextDelta("lo.")]))
    assert added == (Message("assistant", "Hello."),)
    assert said == "Hello."
    assert steps == [1]


async def test_the_tokens_of_all_requests_are_counted() -> None:
    call, output = ToolCall("c1", "volume", "{}"), Output()
    llm = ScriptedLlm(
        [TokensUsed(TokenUsage(10, 5, 1)), CallsAsked((call,))],
        [TextDelta("Okay."), TokensUsed(TokenUsage(20, 10, 2))],
    )
    async with asyncio.timeout(5):
        await agent.run_turn([Message("user", "hi")], llm, Tools(), output)
    assert output.usage == TokenUsage(30, 15, 3)


async def test_results_go_back_to_the_model_with_their_ids() -> None:
    call = ToolCall("c1", "volume", "{}")
    llm = ScriptedLlm([CallsAsked((call,))], [TextDelta("Okay.")])
    added, said, steps = await run(llm)
    assert added == (
        Message("assistant", "", (call,)),
        Message("tool", "done c1", call_id="c1"),
        Message("assistant", "Okay."),
    )
    assert llm.asked[1][0][1:] == added[:2]
    assert (said, steps) == ("Okay.", [1, 2, 3])


async def test_calls_of_one_message_run_side_by_side() -> None:
    calls = (ToolCall("a", "volume", "{}"), ToolCall("b", "volume", "{}"))
    added, _, _ = await run(ScriptedLlm([CallsAsked(calls)], [TextDelta("x")]), Tools(parties=2))
    assert [message.call_id for message in added[1:3]] == ["a", "b"]


async def test_a_call_without_an_outcome_ends_the_turn() -> None:
    class Away(Tools):
        async def call(self, call: ToolCall) -> str:
            if call.id == "c2":
                raise Unavailable("away")
            return await super().call(call)

    llm, tools = ScriptedLlm([CallsAsked((ToolCall("c1", "volume", "{}"), ToolCall("c2", "volume", "{}")))]), Away(2)
    with pytest.raises(Unavailable):
        await run(llm, tools)
    assert (tools.called, llm.script) == (["c1"], [])


async def test_calls_beyond_the_limit_are_not_made() -> None:
    calls = tuple(ToolCall(str(number), "volume", "{}") for number in range(agent.MOST_CALLS + 3))
    added, _, _ = await run(ScriptedLlm([CallsAsked(calls)], [TextDelta("x")]))
    assert len(added[0].calls) == agent.MOST_CALLS
    assert [message.role for message in added].count("tool") == agent.MOST_CALLS


async def test_text_before_and_after_a_call_is_said_in_order() -> None:
    call = CallsAsked((ToolCall("a", "volume", "{}"),))
    added, said, _ = await run(ScriptedLlm([TextDelta("One moment. "), call], [TextDelta("Done.")]))
    assert said == "One moment. Done."
    assert [message.text for message in added] == ["One moment. ", "done a", "Done."]


async def test_endless_calls_are_bounded_by_a_round_without_tools() -> None:
    rounds = range(agent.MOST_ROUNDS)
    asks: list[list[LlmEvent | ProviderError]] = [
        [TextDelta("So"), CallsAsked((ToolCall(str(n), "volume", "{}"),))] for n in rounds
    ]
    llm = ScriptedLlm(*asks)
    added, _, _ = await run(llm)
    assert len(llm.asked) == agent.MOST_ROUNDS
    assert [options.may_call for options in llm.options] == [True] * (agent.MOST_ROUNDS - 1) + [False]
    assert llm.asked[-1][1] == (OFFER,), "endpoints refuse a conversation that holds calls when no tools are shown"
    assert added[-1].calls == ()


async def test_a_failure_travels_and_the_stream_is_closed() -> None:
    llm = ScriptedLlm([TextDelta("So"), ProviderError("broke off", retryable=True)])
    with pytest.raises(ProviderError):
        await run(llm)
    assert llm.closed == 1


CALLS = (ToolCall("a", "volume", "{}"), ToolCall("b", "volume", "{}"))
ASKED = Message("assistant", "One moment.", CALLS)
DONE = (Message("tool", "done a", call_id="a"), Message("tool", "done b", call_id="b"))


async def test_calls_that_were_asked_for_before_are_given_to_the_tools_once_more() -> None:
    llm, tools = ScriptedLlm([TextDelta("Okay.")]), Tools(parties=2)
    added, said, steps = await run(llm, tools, Progress((ASKED,)))
    assert sorted(tools.called) == ["a", "b"]
    assert added == (ASKED, *DONE, Message("assistant", "Okay."))
    assert llm.asked[0][0][1:] == (ASKED, *DONE)
    assert (said, steps) == ("Okay.", [1, 3, 4])


async def test_calls_whose_outcomes_are_known_are_not_made_again() -> None:
    llm, tools = ScriptedLlm([TextDelta("Okay.")]), Tools()
    added, said, _ = await run(llm, tools, Progress((ASKED, *DONE)))
    assert tools.called == []
    assert added[-1] == Message("assistant", "Okay.")
    assert said == "Okay."


async def test_a_message_that_broke_off_is_gone_on_with() -> None:
    llm = ScriptedLlm([TextDelta("Once there was "), TextDelta("a cat. It was red. It slept.")])
    added, said, steps = await run(llm, before=Progress((), ("Once there was a cat.", "It was red.")))
    assert added == (
        Message("assistant", "Once there was a cat."),
        Message("assistant", "It was red."),
        Message("assistant", " It slept."),
    )
    assert said == " It slept."
    assert steps == [3]
    system, user = llm.asked[0][0]
    assert "Once there was a cat. It was red." in system.text
    assert user == Message("user", "hi")


async def test_only_the_message_that_broke_off_is_reminded_of() -> None:
    llm = ScriptedLlm([TextDelta("Go."), CallsAsked(CALLS[:1])], [TextDelta("Done.")])
    added, said, _ = await run(llm, before=Progress((), ("Wait.",)))
    assert said == "Go.Done."
    assert [message.role for message in llm.asked[0][0]] == ["system", "user"]
    assert [message.role for message in llm.asked[1][0]] == ["user", "assistant", "tool"]
    assert [message.text for message in added] == ["Wait.", "Go.", "done a", "Done."]


async def test_the_rounds_before_count() -> None:
    before = tuple(
        message
        for number in range(agent.MOST_ROUNDS - 1)
        for message in (
            Message("assistant", "", (ToolCall(str(number), "volume", "{}"),)),
            Message("tool", "x", call_id=str(number)),
        )
    )
    llm = ScriptedLlm([TextDelta("Done.")])
    await run(llm, before=Progress(before))
    assert not llm.options[0].may_call


def broken(name: str) -> CallsAsked:
    return CallsAsked((ToolCall(name, "volume", '{"level": '),))


async def test_calls_that_cannot_be_read_are_asked_for_again_once() -> None:
    llm = ScriptedLlm([broken("a")], [broken("b")], [TextDelta("It cannot be done.")])
    added, said, _ = await run(llm)
    assert [options.may_call for options in llm.options] == [True, True, False]
    assert [message.role for message in added] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert said == "It cannot be done."


async def test_a_call_that_could_not_be_read_may_be_mended() -> None:
    llm = ScriptedLlm([broken("a")], [CallsAsked(CALLS[:1])], [TextDelta("Done.")])
    _, said, _ = await run(llm)
    assert [options.may_call for options in llm.options] == [True, True, True]
    assert said == "Done."


@pytest.mark.parametrize("nothing", [[], [TextDelta(" \n")], [ThoughtDelta("hm")]])
async def test_an_empty_answer_is_asked_for_again_once(nothing: list[LlmEvent]) -> None:
    llm = ScriptedLlm(nothing, [TextDelta("Here I am.")])
    added, said, steps = await run(llm)
    assert (said.strip(), steps) == ("Here I am.", [1])
    assert added == (Message("assistant", "Here I am."),)
    assert llm.asked[1][0][0].role == "system"
    assert "must not be empty" in llm.asked[1][0][0].text
    llm = ScriptedLlm(nothing, nothing)
    added, _, _ = await run(llm)
    assert not added[-1].text.strip()
    assert len(llm.asked) == 2


async def test_nothing_more_is_asked_for_when_something_was_said_before_the_calls() -> None:
    llm = ScriptedLlm([TextDelta("One moment."), CallsAsked(CALLS[:1])], [])
    _, said, _ = await run(llm)
    assert (said, len(llm.asked)) == ("One moment.", 2)


async def test_a_model_that_calls_where_it_may_not_is_urged_to_speak() -> None:
    asks = [[CallsAsked((ToolCall(str(n), "volume", "{}"),))] for n in range(agent.MOST_ROUNDS)]
    llm, tools = ScriptedLlm(*asks, [TextDelta("Enough.")]), Tools()
    _, said, _ = await run(llm, tools)
    assert said == "Enough."
    assert len(tools.called) == agent.MOST_ROUNDS - 1
    assert [options.may_call for options in llm.options][-2:] == [False, False]


async def test_thoughts_are_given_apart_and_not_remembered() -> None:
    output = Output()
    llm = ScriptedLlm([ThoughtDelta("hm"), TextDelta("Yes."), ThoughtDelta("so")])
    async with asyncio.timeout(5):
        added = await agent.run_turn([Message("user", "hi")], llm, Tools(), output)
    assert (output.said, output.thoughts) == (["Yes."], ["hm", "so"])
    assert added == (Message("assistant", "Yes."),)
    added, said, _ = await run(ScriptedLlm([ThoughtDelta("hm"), TextDelta("Yes.")]))
    assert said == "Yes."


async def test_the_choices_of_a_turn_are_those_of_each_request() -> None:
    llm = ScriptedLlm([CallsAsked(CALLS[:1])], [TextDelta("Done.")])
    await run(llm, options=LlmOptions(0.2, 30))
    assert llm.options == [LlmOptions(0.2, 30), LlmOptions(0.2, 30)]


async def test_a_turn_without_calls_is_one_message() -> None:
    llm = ScriptedLlm([CallsAsked(CALLS[:1]), TextDelta("No.")])
    added, _, _ = await run(llm, options=LlmOptions(may_call=False))
    assert added == (Message("assistant", "No."),)


LONG = {"one chunk": [TextDelta("a\n" * 20_000)], "single words": [TextDelta("a ")] * 20_000}


@pytest.mark.parametrize("events", LONG.values(), ids=LONG)
async def test_others_have_their_turn_while_a_long_text_is_said(events: list[LlmEvent]) -> None:
    """How much is said between two turns of the loop is counted, for what it takes depends on the machine."""
    said = most = 0

    class Counting(Output):
        async def say(self, text: str) -> None:
            nonlocal said, most
            said += len(text)
            most = max(most, said)

    def look() -> None:
        nonlocal said
        said = 0
        if not done:
            loop.call_soon(look)

    loop, done = asyncio.get_running_loop(), False
    look()
    [answer] = await agent.run_turn([Message("user", "hi")], ScriptedLlm(events), Tools(), Counting())
    done = True
    assert len(answer.text) == 40_000
    assert most <= 500
