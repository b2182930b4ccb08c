"""The loop between a chat model and its tools: one user message until an answer without calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

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


async def run_turn(
    asked: Sequence[Message], llm: Llm, tools: Tools, say: Callable[[str], Awaitable[None]], journal: Journal
) -> tuple[Message, ...]:
    """Let the model answer, running the tools that it asks for.

    Args:
        asked: The conversation up to and including the user's message.
        llm: The model.
        tools: What it may call; the calls of one message run side by side.
        say: Takes each piece of text as it is written.
        journal: Told every message before the next step.

    Returns:
        The messages that the turn added, from the first assistant message to the answer.

    Raises:
        ProviderError: The model failed; what was said before stays said.
    """
    added: tuple[Message, ...] = ()
    for left in reversed(range(MOST_ROUNDS)):
        message = await _listen(llm, (*asked, *added), tools.offers if left else (), say)
        added = (*added, message)
        await journal.record(added)
        if not message.calls:
            break
        added = (*added, *await _run_calls(message.calls, tools))
        await journal.record(added)
    return added


async def _listen(
    llm: Llm, messages: Sequence[Message], offers: Sequence[ToolOffer], say: Callable[[str], Awaitable[None]]
) -> Message:
    text: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    async with aclosing(llm.stream(messages, offers)) as events:
        async for event in events:
            match event:
                case TextDelta(piece):
                    text.append(piece)
                    await say(piece)
                case CallsAsked(asked):
                    calls = asked[:MOST_CALLS]
    return Message("assistant", "".join(text), calls if offers else ())


async def _run_calls(calls: Sequence[ToolCall], tools: Tools) -> tuple[Message, ...]:
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(tools.call(call), name=f"tool {call.name}") for call in calls]
    return tuple(Message("tool", task.result(), call_id=call.id) for call, task in zip(calls, running, strict=True))
