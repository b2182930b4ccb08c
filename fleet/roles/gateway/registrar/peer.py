"""Send the messages of the LLM Gateway API in the registrar dialect, so that both dialects share the same turns."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from pydantic import JsonValue

from fleet.core.agent_settings import AgentModels
from fleet.core.controls import SENT, failure_report
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, ThoughtDelta, ToolOffer
from fleet.core.text.phrases import phrase
from fleet.ground.tasks import isolate
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.wire import gateway_messages as messages
from fleet.wire.agents import CompiledAgent
from fleet.wire.dialect_registrar import DIALECT
from fleet.wire.gateway import ToolAnswer
from fleet.wire.messages import AiMessageCommand, CallToolCommand, DeviceCommand

log = logging.getLogger(__name__)

MOST_CONTROLS = 32
"""Calls of control tools that run without the turn waiting for them; the turn waits for a further one."""

MOST_CALLS = 256
"""Calls whose ids are stored; the bound is for calls that are never answered."""
_HIGHEST_ID = 2**30
_LATE = "error: unknown whether it was done, the device did not answer in time"


class RegistrarPeer(Client):
    """A registrar: sends the API's messages in its dialect.

    Args:
        client: Its connection.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.address = client.address
        self._calls: dict[str, str] = {}
        """The API's ids of pending calls, by their ids in the dialect."""

    async def send(self, message: messages.Message) -> None:
        match message:
            case messages.LlmResponse():
                await self.send_command(AiMessageCommand("final" if message.is_final else "chunk", message.content))
            case messages.Failure():
                log.info("turn apologised for", extra={"code": message.code})
                await self.send_command(AiMessageCommand("final", phrase("failed", "")))
            case messages.ToolCallback():
                rpc_id = secrets.randbelow(_HIGHEST_ID)
                self._calls[str(rpc_id)] = message.call_id
                if len(self._calls) > MOST_CALLS:
                    del self._calls[next(iter(self._calls))]
                await self.send_command(CallToolCommand(rpc_id, message.tool_name, message.arguments))
            case _:
                return

    async def send_command(self, command: DeviceCommand) -> None:
        """Send a command in the dialect.

        Raises:
            ClientGone: The client has left, or does not read.
        """
        await self._client.send_frame(DIALECT.send(command).decode())

    def call_of(self, rpc_id: str) -> str:
        """Return and remove the API's id of an answered call; empty if there is no such call."""
        return self._calls.pop(rpc_id, "")


class RegistrarCallbacks(Callbacks):
    """Calls of a registrar's tools. A failure becomes a result for the model; the turn does not wait for controls.

    Args:
        client: The client.
        seconds: Longest wait for an answer.
        most: Most pending calls.
        on_failure: Called with the report of a failed control.
    """

    def __init__(self, client: Client, seconds: float, most: int, on_failure: Callable[[str], None]) -> None:
        super().__init__(client, seconds, most)
        self.controls: frozenset[str] = frozenset()
        """Names of the control tools."""
        self._on_failure = on_failure
        self._group: asyncio.TaskGroup | None = None
        self._open = 0

    async def run(self) -> None:
        """Run the calls of controls until cancelled."""
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


class ModelsWithThoughts:
    """Models whose thoughts are sent to the client.

    Args:
        models: The models.
        registrar: The client.
    """

    def __init__(self, models: AgentModels, registrar: RegistrarPeer) -> None:
        self._models = models
        self._registrar = registrar

    async def find(self, agent: CompiledAgent) -> Llm:
        """See `fleet.core.agent_settings.AgentModels`."""
        return LlmWithThoughts(await self._models.find(agent), self._registrar)


class LlmWithThoughts:
    """A model whose thoughts are sent to the client.

    Args:
        llm: The model.
        registrar: The client.
    """

    def __init__(self, llm: Llm, registrar: RegistrarPeer) -> None:
        self._llm = llm
        self._registrar = registrar

    async def stream(
        self, asked: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message; see `fleet.core.ports.Llm`."""
        async with aclosing(self._llm.stream(asked, tools, options)) as events:
            async for event in events:
                if isinstance(event, ThoughtDelta):
                    await self._registrar.send_command(AiMessageCommand("thought", event.text))
                else:
                    yield event
