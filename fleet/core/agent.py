"""The loop between a chat model and its tools: one user message until an answer without calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from fleet.core.continuation import Continuation, remind
from fleet.core.history import settle
from fleet.core.ports import CallsAsked, Llm, Message, TextDelta, ToolCall, ToolOffer

MOST_ROUNDS = 6
"""Model messages in one turn; the last is offered no tools, so that it must answer."""
MOST_CALLS = 16
"""Calls of one message that are made; a device takes no more at once."""


class Tools(Protocol):
    """What the model may call in a turn."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """The tools as the model sees them."""

    async def call(self, call: ToolCall) -> str:
        """Run one call and return its outcome as text for the model; failures are outcomes, never exceptions."""


class Journal(Protocol):
    """Remembers what a turn has done, so that another worker could go on from there."""

    async def record(self, messages: Sequence[Message]) -> None:
        """Write down the turn's messages so far; awaited before the next step begins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a turn had got before: its messages, and what was said of one that broke off after them, part by part."""

    messages: tuple[Message, ...] = ()
    said: tuple[str, ...] = ()


async def run_turn(
    asked: Sequence[Message],
    llm: Llm,
    tools: Tools,
    say: Callable[[str], Awaitable[None]],
    journal: Journal,
    before: Progress = Progress(),
) -> tuple[Message, ...]:
    """Let the model answer, running the tools that it asks for.

    Args:
        asked: The conversation up to and including the user's message; the first message is the system's.
        llm: The model.
        tools: What it may call; the calls of one message run side by side.
        say: Takes each piece of text as it is written.
        journal: Told every message before the next step.
        before: Where to go on. Calls that were asked for are given to `tools` once more, with the ids that they had.

    Returns:
        The messages of the turn, from the first assistant message to the answer.

    Raises:
        ProviderError: The model failed; what was said before stays said.
    """
    added, said = before.messages, before.said
    if added and added[-1].calls:
        added = await _run_calls(added, tools)
        await journal.record(added)
    rounds = max(MOST_ROUNDS - sum(message.role == "assistant" for message in added), 1)
    for left in reversed(range(rounds)):
        context = (*(remind(asked, said) if said else asked), *settle(added))
        message = await _listen(llm, context, tools.offers if left else (), Continuation(said, say))
        added, said = (*added, *(Message("assistant", part) for part in said), message), ()
        await journal.record(added)
        if not message.calls:
            break
        added = await _run_calls(added, tools)
        await journal.record(added)
    return added


async def _listen(llm: Llm, messages: Sequence[Message], offers: Sequence[ToolOffer], text: Continuation) -> Message:
    calls: tuple[ToolCall, ...] = ()
    async with aclosing(llm.stream(messages, offers)) as events:
        async for event in events:
            match event:
                case TextDelta(piece):
                    await text.take(piece)
                case CallsAsked(asked):
                    calls = asked[:MOST_CALLS]
    return Message("assistant", text.new, calls if offers else ())


async def _run_calls(added: tuple[Message, ...], tools: Tools) -> tuple[Message, ...]:
    """Return the messages with the outcomes of the last one's calls."""
    calls = added[-1].calls
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(tools.call(call), name=f"tool {call.name}") for call in calls]
    outcomes = [Message("tool", task.result(), call_id=call.id) for call, task in zip(calls, running, strict=True)]
    return (*added, *outcomes)
