"""The loop between a chat model and its tools: one user message until an answer without calls."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from fleet.core.continuation import Continuation, remind, urge
from fleet.core.history import settle
from fleet.core.ports import (
    USUAL,
    CallsAsked,
    Llm,
    LlmOptions,
    Message,
    TextDelta,
    ThoughtDelta,
    TokensUsed,
    TokenUsage,
    ToolCall,
    ToolOffer,
)
from fleet.core.text.pieces import PIECE_CHARACTERS, cut_text
from fleet.core.toolbox import read_arguments
from fleet.ground.loop_yield import LoopYield

MOST_ROUNDS = 6
"""Model messages in one turn; in the last it may call nothing, so that it must answer."""
MOST_REPAIRS = 1
"""Requests in one turn to repeat calls whose arguments were not JSON; after that the model must answer."""
MOST_CALLS = 16
"""Calls of one message that are run; a device may have no more pending."""


class AgentTools(Protocol):
    """What the model may call in a turn."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """The tools as the model sees them."""

    @property
    def question(self) -> str:
        """What the server asks the user after the calls; the turn ends with it. Empty: the model goes on."""

    async def call(self, call: ToolCall) -> str:
        """Run one call and return its outcome as text for the model; a failure of the tool is an outcome.

        Raises:
            FleetError: It has no outcome; the turn ends without one.
        """


class TurnOutput(Protocol):
    """Takes the text of a turn, and records what the turn has done, so that another worker can continue it."""

    async def say(self, text: str) -> None:
        """Take the next piece of the model's text as it is written."""

    async def think(self, text: str) -> None:
        """Take the next piece of a reasoning model's thoughts."""

    def spend(self, usage: TokenUsage) -> None:
        """Take the tokens of one request to the model."""

    async def record(self, messages: Sequence[Message]) -> None:
        """Write down the turn's messages so far; awaited before the next step begins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a turn that is continued: its messages, and the parts of an unfinished message that were spoken."""

    messages: tuple[Message, ...] = ()
    said: tuple[str, ...] = ()


async def run_turn(
    asked: Sequence[Message],
    llm: Llm,
    tools: AgentTools,
    output: TurnOutput,
    before: Progress = Progress(),
    options: LlmOptions = USUAL,
) -> tuple[Message, ...]:
    """Let the model answer, running the tools that it asks for.

    Args:
        asked: The conversation up to and including the user's message; the first message is the system's.
        llm: The model.
        tools: What it may call; the calls of one message run side by side.
        output: Takes each piece of text, and every message before the next step.
        before: Where to continue. Requested calls are recorded and passed to `tools` once more, under the same ids.
        options: Options of each request to the model.

    Returns:
        The messages of the turn, from the first assistant message to the answer, or to the question of `tools`. The
        answer is empty if the model wrote nothing, also after a second request.

    Raises:
        ProviderError: The model failed; the text passed to `output` before stays spoken.
    """
    added, said = before.messages, before.said
    if added and added[-1].calls:
        await output.record(added)
        added = await _run_calls(added, tools, output)
    model = _Model(llm, tools, output, options)
    left = max(MOST_ROUNDS - sum(message.role == "assistant" for message in added), 1)
    while not tools.question:
        left -= 1
        message = await model.ask(asked, added, said, may_call=left > 0)
        parts = (*added, *(Message("assistant", part) for part in said), message)
        if not model.urged and not message.calls and not _has_text(parts):
            model.urged = True
            continue
        added, said = parts, ()
        await output.record(added)
        if not message.calls:
            break
        added = await _run_calls(added, tools, output)
    return added


@dataclass(slots=True)
class _Model:
    """The model in one turn."""

    llm: Llm
    tools: AgentTools
    output: TurnOutput
    options: LlmOptions
    urged: bool = False
    """Whether the prompt demands an answer that is not empty."""

    async def ask(
        self, asked: Sequence[Message], added: Sequence[Message], said: Sequence[str], *, may_call: bool
    ) -> Message:
        """Read the model's next message; drop calls where none are allowed."""
        may_call = may_call and self.options.may_call and _unreadable(added) <= MOST_REPAIRS
        context = (*_context(asked, said, urged=self.urged), *settle(added))
        stream = self.llm.stream(context, self.tools.offers, replace(self.options, may_call=may_call))
        text, loop_yield = Continuation(said), LoopYield(PIECE_CHARACTERS)
        calls: tuple[ToolCall, ...] = ()
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextDelta(piece):
                        for part in cut_text(piece):
                            if new := text.take(part):
                                await self.output.say(new)
                            await loop_yield.spend(len(part))
                    case ThoughtDelta(piece):
                        await self.output.think(piece)
                        await loop_yield.spend(len(piece))
                    case TokensUsed(usage):
                        self.output.spend(usage)
                    case CallsAsked(wanted) if may_call:
                        calls = wanted[:MOST_CALLS]
        return Message("assistant", text.new, calls)


def _context(asked: Sequence[Message], said: Sequence[str], *, urged: bool) -> Sequence[Message]:
    if said:
        return remind(asked, said)
    return urge(asked) if urged else asked


def _has_text(messages: Sequence[Message]) -> bool:
    """Whether the model has written any text."""
    return any(message.role == "assistant" and message.text.strip() for message in messages)


def _unreadable(messages: Sequence[Message]) -> int:
    """Count the messages with calls whose arguments could not be read."""
    return sum(any(read_arguments(call.arguments) is None for call in message.calls) for message in messages)


async def _run_calls(added: tuple[Message, ...], tools: AgentTools, output: TurnOutput) -> tuple[Message, ...]:
    """Return the messages with the outcomes of the last one's calls, and the question of the tools, if there is one.

    Raises:
        FleetError: A call had no outcome; the others are cancelled.
    """
    calls = added[-1].calls
    texts = [await tools.call(calls[0])] if len(calls) == 1 else await _run_together(calls, tools)
    added = (*added, *(Message("tool", text, call_id=call.id) for call, text in zip(calls, texts, strict=True)))
    await output.record(added)
    if tools.question:
        await output.say(tools.question)
        added = (*added, Message("assistant", tools.question))
        await output.record(added)
    return added


async def _run_together(calls: Sequence[ToolCall], tools: AgentTools) -> list[str]:
    """Return the outcomes of calls that run side by side."""
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(tools.call(call), name=f"tool {call.name}") for call in calls]
    except ExceptionGroup as failures:
        # What ends one call mostly ends all of them: the store is away, or the shard is another worker's.
        raise failures.exceptions[0] from None
    return [task.result() for task in running]
