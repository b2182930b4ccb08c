"""Saying the API's messages in the registrar dialect: so both are answered by the same turns."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from pydantic import JsonValue

from fleet.core.controls import SENT, failure_report
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, ThoughtDelta, ToolOffer
from fleet.core.text.phrases import phrase
from fleet.ground.tasks import isolate
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.wire import gateway_messages as messages
from fleet.wire.dialect_registrar import DIALECT
from fleet.wire.gateway import ToolAnswer
from fleet.wire.messages import AiMessageCommand, CallToolCommand, DeviceCommand

log = logging.getLogger(__name__)

MOST_CONTROLS = 32
"""Calls whose answers nobody waits for; a further one is waited for."""

MOST_CALLS = 256
"""Calls whose ids are remembered: one that is never answered would be for as long as the client stays."""
_HIGHEST_ID = 2**30
_LATE = "error: unknown whether it was done, the device did not answer in time"


class RegistrarPeer(Client):
    """A registrar, to whom the API's messages are said in its own words.

    Args:
        peer: Its connection.
    """

    def __init__(self, peer: Client) -> None:
        self._peer = peer
        self.address = peer.address
        self._calls: dict[str, str] = {}
        """The API's ids of open calls, by those that the client was given."""

    async def send(self, message: messages.Message) -> None:
        match message:
            case messages.LlmResponse():
                await self.send_command(AiMessageCommand("final" if message.is_final else "chunk", message.content))
            case messages.Failure():
                log.info("turn apologised for", extra={"code": message.code})
                await self.send_command(AiMessageCommand("final", phrase("failed", "")))
            case messages.ToolCallback():
                number = secrets.randbelow(_HIGHEST_ID)
                self._calls[str(number)] = message.call_id
                if len(self._calls) > MOST_CALLS:
                    del self._calls[next(iter(self._calls))]
                await self.send_command(CallToolCommand(number, message.tool_name, message.arguments))
            case _:
                return

    async def send_command(self, command: DeviceCommand) -> None:
        """Say something of the dialect's own.

        Raises:
            Gone: The client is gone, or does not read.
        """
        await self._peer.send_text(DIALECT.send(command).decode())

    def call_of(self, number: str) -> str:
        """Return the API's id of a call that is answered, once; an empty one for an answer to no call."""
        return self._calls.pop(number, "")


class RegistrarCallbacks(Callbacks):
    """Calls of a registrar's tools: what went wrong is told to the model, and a control is not waited for.

    Args:
        peer: The client.
        seconds: Longest wait for an answer.
        most: Open calls at a time.
        on_failure: Takes the report of a control that failed.
    """

    def __init__(self, peer: Client, seconds: float, most: int, on_failure: Callable[[str], None]) -> None:
        super().__init__(peer, seconds, most)
        self.controls: frozenset[str] = frozenset()
        """Names of the tools that are not waited for."""
        self._on_failure = on_failure
        self._group: asyncio.TaskGroup | None = None
        self._open = 0

    async def run(self) -> None:
        """See controls to their ends, until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            await asyncio.Event().wait()

    async def call(self, name: str, arguments: dict[str, JsonValue]) -> ToolAnswer:
        if name in self.controls and self._group is not None and self._open < MOST_CONTROLS:
            self._group.create_task(isolate(f"control {name}", self._follow(name, arguments)), name=f"control {name}")
            return ToolAnswer("", success=True, result=SENT)
        answer = await super().call(name, arguments)
        if answer is None:
            return ToolAnswer("", success=True, result=_LATE)
        return answer if answer.success else replace(answer, success=True, result=f"error: {answer.error}")

    async def _follow(self, name: str, arguments: dict[str, JsonValue]) -> None:
        self._open += 1
        try:
            answer = await super().call(name, arguments)
        finally:
            self._open -= 1
        log.info("control ended", extra={"tool": name, "answered": answer is not None})
        if answer is not None and not answer.success:
            self._on_failure(failure_report(name, answer.error))


class NarratedLlm:
    """A model that is told more, and whose thoughts are shown.

    Args:
        llm: The model.
        registrar: Shown its thoughts.
        notes: What the model is told of earlier failures, as data.
    """

    def __init__(self, llm: Llm, registrar: RegistrarPeer, notes: str) -> None:
        self._llm = llm
        self._registrar_peer = registrar
        self._notes = notes

    async def stream(
        self, asked: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message; see `fleet.core.ports.Llm`."""
        if self._notes and asked and asked[0].role == "system":
            asked = (replace(asked[0], text=f"{asked[0].text}\n{self._notes}"), *asked[1:])
        async with aclosing(self._llm.stream(asked, tools, options)) as events:
            async for event in events:
                if isinstance(event, ThoughtDelta):
                    await self._registrar_peer.send_command(AiMessageCommand("thought", event.text))
                else:
                    yield event
