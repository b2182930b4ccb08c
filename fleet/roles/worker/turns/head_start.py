"""The first request to the model of a turn that is not certain yet (docs/adr/0035-ends-of-turns.md)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from msgspec.structs import replace

from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, TextDelta, ToolOffer
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable
from fleet.ground.errors import FleetError
from fleet.ground.tracing import spans
from fleet.wire.edge_messages import PrepareSentenceCommand

LONGEST_SECONDS = 5.0
"""How long a head start waits for its turn."""
MOST_EVENTS = 256
"""Events of the model that are read ahead; then the request waits."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the model is asked."""

    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...]
    options: LlmOptions = USUAL
    agent: str = ""
    """Digest of the agent, which may choose another model."""


class HeadStart:
    """Reads the model's first message ahead; it has no effect, and no call in it runs.

    Args:
        llm: The model.
        request: What it is asked.
    """

    def __init__(self, llm: Llm, request: Request) -> None:
        self._llm = llm
        self._request = request
        self._events: asyncio.Queue[LlmEvent | FleetError | None] = asyncio.Queue(MOST_EVENTS)
        self._splitter: SentenceSplitter | None = SentenceSplitter()
        self._reading = asyncio.current_task()
        self._limit = asyncio.timeout(LONGEST_SECONDS)
        self._failed = False
        self._traceparent = spans.current().traceparent
        self._over = asyncio.Event()
        self.used = False
        """Whether a turn has taken the answer."""

    async def read(self, inboxes: Inboxes, edge: str, announcement: PrepareSentenceCommand) -> None:
        """Read the message in the task that made this; return when its turn has it.

        Args:
            inboxes: Of the edges.
            edge: The edge that synthesises the first sentence.
            announcement: The message for the edge, without the sentence.

        Raises:
            TimeoutError: No turn has taken it.
        """
        request = self._request
        async with self._limit:
            try:
                async with aclosing(self._llm.stream(request.messages, request.tools, request.options)) as events:
                    async for event in events:
                        await self._events.put(event)
                        if isinstance(event, TextDelta) and (text := self._first_sentence(event.text)):
                            await inboxes.to_edge(edge, replace(announcement, text=text))
            except FleetError as error:
                self._failed = True
                await self._events.put(error)
            await self._events.put(None)
            await self._over.wait()

    def take(self, request: Request) -> AsyncGenerator[LlmEvent, None] | None:
        """Return the answer, once, if this request is the one that was asked; else end the reading."""
        if self.used:
            return None
        if request != self._request or self._limit.expired() or (self._failed and self._events.qsize() <= 2):
            self.close()
            return None
        self.used = True
        self._limit.reschedule(None)
        return self._replay()

    def close(self) -> None:
        """Close the request."""
        if self._reading:
            self._reading.cancel()

    async def _replay(self) -> AsyncGenerator[LlmEvent, None]:
        # The request itself is in the trace of the head start: when it was sent there was no turn yet.
        span = spans.begin("chat ahead", {"gen_ai.operation.name": "chat", "fleet.head_start": self._traceparent})
        try:
            while (event := await self._events.get()) is not None:
                if isinstance(event, FleetError):
                    raise event
                yield event
        finally:
            span.end()
            self._over.set()
            self.close()

    def _first_sentence(self, text: str) -> str:
        """Return the first sentence, once."""
        for piece in self._splitter.feed(text) if self._splitter else ():
            if spoken := speakable(piece):
                self._splitter = None
                return spoken
        return ""


class AheadLlm:
    """A chat model of which one answer was read ahead.

    Args:
        llm: The model.
        head_start: The answer.
        agent: Digest of the agent of the turn.
    """

    def __init__(self, llm: Llm, head_start: HeadStart, agent: str = "") -> None:
        self._llm = llm
        self._head_start = head_start
        self._agent = agent

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Return the answer that was read ahead if it fits; see `fleet.core.ports.Llm`."""
        ahead = self._head_start.take(Request(tuple(messages), tuple(tools), options, self._agent))
        return ahead or self._llm.stream(messages, tools, options)
