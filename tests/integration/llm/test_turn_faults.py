"""Whole turns with a model that does everything wrong, over real HTTP with the real library."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.core import agent
from fleet.core.ports import LlmOptions, Message, TokenUsage, ToolCall
from fleet.core.toolbox import Refusal, Toolbox
from fleet.ground.errors import ProviderError
from fleet.wire.mcp import ToolSpec
from tests.support.openai_server import DONE, SSE, Answer, OpenAiServer, asked, delta, run_openai_server, spoken, sse

LIMIT = 240.0
LEVEL = {"properties": {"level": {"type": "integer"}}, "required": ["level"]}
VOLUME = ToolSpec(name="self.audio.set_volume", description="Sets it.", input_schema=LEVEL)
LAMP = ToolSpec(name="lamp.on", description="Turns it on.")
NAME = "audio_set_volume"


class Tools:
    """A device's tools that note what is asked of them, and for what reason something is refused."""

    question = ""

    def __init__(self) -> None:
        self._toolbox = Toolbox([VOLUME, LAMP])
        self.offers = self._toolbox.offers
        self.done: list[tuple[str, Any]] = []
        self.faults: list[str] = []

    async def call(self, call: ToolCall) -> str:
        prepared = self._toolbox.prepare(call)
        if isinstance(prepared, Refusal):
            self.faults.append(prepared.fault)
            return prepared.reason
        self.done.append((prepared.tool.name, prepared.arguments))
        return "ok"


class Stage:
    def __init__(self, server: OpenAiServer, llm: OpenAiLlm) -> None:
        self.server, self._llm = server, llm
        self.tools = Tools()
        self.thoughts = ""
        self.on_word = asyncio.Event()

    async def turn(self, *answers: Answer, options: LlmOptions = LlmOptions()) -> str:  # noqa: B008
        """Return what is said."""
        self.server.chat(*answers)
        self.said = ""
        question = [Message("system", "Be kind."), Message("user", "hi")]
        async with asyncio.timeout(240):
            await agent.run_turn(question, self._llm, self.tools, self, options=options)
        return self.said

    async def say(self, text: str) -> None:
        self.said += text
        self.on_word.set()

    async def think(self, text: str) -> None:
        self.thoughts += text

    def spend(self, usage: TokenUsage) -> None:
        """Keep nothing."""

    async def record(self, messages: Sequence[Message]) -> None:
        assert messages

    @property
    def outcomes(self) -> list[str]:
        """What the model was told of its calls, in its last request."""
        return [one["content"] for one in self.server.requests[-1].json["messages"] if one["role"] == "tool"]

    @property
    def choices(self) -> list[str]:
        return [request.json.get("tool_choice", "") for request in self.server.requests]


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture
async def stage(server: OpenAiServer) -> AsyncIterator[Stage]:
    server.reset()
    llm = OpenAiLlm(server.url, None, "m", LIMIT)
    yield Stage(server, llm)
    await llm.aclose()


def piece(index: int | None, name: str | None, arguments: str, call: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    fields = {"index": index, "id": call, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


PIECES: dict[str, list[dict[str, Any]]] = {
    "split": [piece(0, NAME, '{"le', "a"), piece(0, None, 'vel":3}'), piece(1, "lamp_on", "{}", "b")],
    "mixed": [
        piece(0, NAME, '{"le', "a"),
        piece(1, "lamp_on", "{", "b"),
        piece(0, None, 'vel":3}'),
        piece(1, None, "}"),
    ],
    "without an index": [
        piece(None, NAME, '{"le', "a"),
        piece(None, None, 'vel":3}'),
        piece(None, "lamp_on", "{}", "b"),
    ],
    "without ids": [piece(0, NAME, '{"level":3}'), piece(1, "lamp_on", "{}")],
    "without either": [piece(None, NAME, '{"level":3}'), piece(None, "lamp_on", "{}")],
    "the same id twice": [piece(0, NAME, '{"level":3}', "a"), piece(1, "lamp_on", "{}", "a")],
    "one index": [piece(0, NAME, '{"level":3}', "a"), piece(0, "lamp_on", "{}", "b")],
    "empty arguments": [piece(0, NAME, '{"level":3}', "a"), piece(1, "lamp_on", "", "b")],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
async def test_calls_are_made_however_they_are_written(stage: Stage, pieces: list[dict[str, Any]]) -> None:
    assert await stage.turn(asked(*pieces), spoken("Done.")) == "Done."
    assert sorted(stage.tools.done) == [("lamp.on", {}), ("self.audio.set_volume", {"level": 3})]
    messages = stage.server.requests[-1].json["messages"]
    ids = [call["id"] for call in messages[2]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in messages[3:]] == ids


async def test_arguments_that_are_no_json_are_asked_for_again(stage: Stage) -> None:
    bad, good = (asked(piece(0, NAME, written, "a")) for written in ('{"level": 3', '{"level": 3}'))
    assert await stage.turn(bad, good, spoken("Done.")) == "Done."
    assert stage.tools.done == [("self.audio.set_volume", {"level": 3})]
    assert "no valid JSON" in stage.outcomes[0]
    assert stage.choices == ["", "", ""]


async def test_arguments_that_are_no_json_twice_are_reported(stage: Stage) -> None:
    bad = asked(piece(0, NAME, '{"level": 3', "a"))
    assert await stage.turn(bad, bad, spoken("It did not work.")) == "It did not work."
    assert stage.tools.done == []
    assert stage.tools.faults == ["INVALID_TOOL_PARAMETERS"] * 2
    assert stage.choices == ["", "", "none"]


async def test_an_unknown_tool_is_told_with_those_that_there_are(stage: Stage) -> None:
    assert await stage.turn(asked(piece(0, "fly", "{}", "a")), spoken("I cannot fly.")) == "I cannot fly."
    assert stage.tools.faults == ["TOOL_NOT_FOUND"]
    assert stage.outcomes == ["error: there is no tool 'fly' (TOOL_NOT_FOUND); there are: audio_set_volume, lamp_on"]


async def test_endless_calls_end_with_an_answer(stage: Stage) -> None:
    again = [asked(piece(0, "lamp_on", "{}", "a")) for _ in range(agent.MOST_ROUNDS - 1)]
    assert await stage.turn(*again, spoken("Enough.")) == "Enough."
    assert len(stage.tools.done) == agent.MOST_ROUNDS - 1
    assert stage.choices == [""] * (agent.MOST_ROUNDS - 1) + ["none"]
    assert all(len(request.json["tools"]) == 2 for request in stage.server.requests)


async def test_endless_calls_of_a_model_that_heeds_nothing_end_too(stage: Stage) -> None:
    assert await stage.turn(asked(piece(0, "lamp_on", "{}", "a"))) == ""
    assert len(stage.server.requests) == agent.MOST_ROUNDS + 1
    assert len(stage.tools.done) == agent.MOST_ROUNDS - 1


NOTHINGS = {
    "no text": spoken(),
    "white space": spoken("\n\n"),
    "thoughts only": spoken("<think>nothing to say</think>"),
    "no choice": Answer([b'data: {"choices":[]}\n\n', DONE], kind=SSE),
    "a call without a name": asked(piece(0, None, "{}", "a")),
}


@pytest.mark.parametrize("nothing", NOTHINGS.values(), ids=NOTHINGS)
async def test_an_empty_answer_is_asked_for_once_more(stage: Stage, nothing: Answer) -> None:
    assert (await stage.turn(nothing, spoken("Here."))).strip() == "Here."
    assert len(stage.server.requests) == 2
    assert "must not be empty" in stage.server.requests[1].json["messages"][0]["content"]
    assert (await stage.turn(nothing)).strip() == ""
    assert len(stage.server.requests) == 4


THOUGHTS = {
    "reasoning_content": [{"reasoning_content": "let me "}, {"reasoning_content": "see"}, {"content": "Yes."}],
    "reasoning": [{"reasoning": "let me "}, {"reasoning": "see"}, {"content": "Yes."}],
    "both": [{"reasoning": "let me see", "reasoning_content": "let me see"}, {"content": "Yes."}],
    "a tag": [{"content": "<think>let me see</think>\n\nYes."}],
    "a split tag": [{"content": text} for text in ("<th", "ink>let me", " see</", "think", ">Ye", "s.")],
    "a tag within": [{"content": "Ye"}, {"content": "s.<thi"}, {"content": "nk>let me see</think>"}],
    "a tag without an end": [{"content": "Yes."}, {"content": "<think>let me"}, {"content": " see"}],
}


@pytest.mark.parametrize("deltas", THOUGHTS.values(), ids=THOUGHTS)
async def test_thoughts_are_neither_said_nor_sent_back_as_words(stage: Stage, deltas: list[dict[str, Any]]) -> None:
    call = delta(tool_calls=[piece(0, "lamp_on", "{}", "a")])
    thinking = Answer([*sse(*(delta(**fields) for fields in deltas), call, delta("tool_calls")), DONE], kind=SSE)
    assert await stage.turn(thinking, spoken(" Done.")) == "Yes.Done."
    assert stage.thoughts == "let me see"
    assert stage.server.requests[1].json["messages"][2]["content"] == "Yes."


async def test_a_turn_that_is_cancelled_closes_the_stream(stage: Stage) -> None:
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        turn = group.create_task(stage.turn(spoken("Once upon a time", then="silent")), name="turn")
        await stage.on_word.wait()
        turn.cancel()
    assert await asyncio.to_thread(stage.server.requests[0].hung_up.wait, 240)


async def test_a_break_after_the_first_words_is_told_and_not_repeated(stage: Stage) -> None:
    with pytest.raises(ProviderError, match="broke off"):
        await stage.turn(spoken("Once", then="break"))
    assert len(stage.server.requests) == 1


async def test_the_choices_of_a_turn_are_in_each_request(stage: Stage) -> None:
    options = LlmOptions(temperature=0.7, max_tokens=2048)
    await stage.turn(asked(piece(0, "lamp_on", "{}", "a")), spoken("Done."), options=options)
    assert [(one.json["temperature"], one.json["max_tokens"]) for one in stage.server.requests] == [(0.7, 2048)] * 2
