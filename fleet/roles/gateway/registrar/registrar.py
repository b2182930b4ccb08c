"""The registrar dialect on a WebSocket: JSON-RPC frames, and texts to answer.

Whoever opens a WebSocket has proved nothing. So such a client is nobody's device: its tools, its history and its
answers are its connection's own, and a MAC that it names is only noted. Who proves a MAC with the device's own MQTT
credentials (`params.auth`) is that device: all goes through its broker and its worker (`device_connection.py`).

There is no microphone here: the client says `text_input`, as everybody on this port, and hears `mcp/ai/message`.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from typing import Protocol

from fleet.core import reports
from fleet.core.reports import DeviceReport
from fleet.core.shared_budget import BudgetShare
from fleet.ground.errors import FleetError
from fleet.ground.tasks import running
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.client_session import ClientSession
from fleet.roles.gateway.registrar.peer import NarratedLlm, RegistrarCallbacks, RegistrarPeer
from fleet.roles.gateway.resources import GatewayResources
from fleet.roles.gateway.turns.client_tools import ALL_FULL, budgeted
from fleet.roles.gateway.turns.text_budget import TEXTS_OF_CONNECTION, TextBudget
from fleet.roles.gateway.turns.turn import Choices, GatewayTurn, Question
from fleet.roles.gateway.turns.turns import GatewayTurns
from fleet.wire import gateway as api
from fleet.wire.dialect_registrar import DIALECT
from fleet.wire.json_text import MOST_VALUES, has_too_many_values, json_length
from fleet.wire.jsonrpc import NO_REQUEST, UNABLE
from fleet.wire.mcp import ToolSpec, clip
from fleet.wire.messages import (
    BadRequestEvent,
    DeviceEvent,
    ErrorCommand,
    IgnoredEvent,
    NotificationEvent,
    RegisteredCommand,
    RegisterToolsEvent,
    ResponseEvent,
)

log = logging.getLogger(__name__)

_MOST_NOTES = 20
_ID_LOOKED_FOR = 8 * 1024
"""Bytes of a refused frame whose id is read."""
_NO_LINES = "this gateway serves no devices, so no MAC can be proved here; register without params.auth"


class RegistrarDevice(Protocol):
    """A client as the device that it has proved to be."""

    async def receive(self, frame: bytes) -> None:
        """Take a frame of the dialect; raises `Gone` when the device's connection is."""

    async def enter(self, text: str) -> None:
        """Take a text for the device's agent; raises `Gone` when it cannot be taken."""


class RegistrarRefused(FleetError):
    """A client could not be made the device that it says it is."""


OpenDevice = Callable[[Client, RegisterToolsEvent], AbstractAsyncContextManager[RegistrarDevice]]
"""Makes a client the device whose credentials it has; raises `RegistrarRefused` with the reason where it is not."""


class Registrar:
    """One client that speaks JSON-RPC.

    Args:
        peer: Its connection.
        resources: What all connections share.
        stack: Ends with the connection.
        open_device: Makes it a device; None where there is no broker.
    """

    def __init__(
        self, peer: Client, resources: GatewayResources, stack: AsyncExitStack, open_device: OpenDevice | None
    ) -> None:
        settings = resources.settings
        self._peer = peer
        self._resources = resources
        self._stack = stack
        self._open_device = open_device
        self._device: RegistrarDevice | None = None
        self._registrar_peer = RegistrarPeer(peer)
        self._session = ClientSession(resources.sessions, peer.address)
        self._notes: list[str] = []
        self._tools: tuple[ToolSpec, ...] = ()
        self._share = stack.enter_context(closing(BudgetShare(resources.tool_budget)))
        self.calls = RegistrarCallbacks(
            self._registrar_peer, settings.client_tool_timeout, settings.client_tool_result_queue_size, self._note
        )
        texts = stack.enter_context(closing(BudgetShare(resources.text_budget, TEXTS_OF_CONNECTION)))
        self.turns = GatewayTurns(self._answer, TextBudget(texts))

    async def begin(self) -> None:
        """Begin the session in which the client is remembered."""
        await self._session.begin()

    async def receive(self, frame: bytes) -> None:
        """Do what a frame asks for; what takes long goes on beside.

        Raises:
            Gone: The client is gone.
        """
        if has_too_many_values(frame):
            await self._registrar_peer.send_command(
                ErrorCommand(None, NO_REQUEST, f"a frame may hold {MOST_VALUES} values")
            )
            return
        event = DIALECT.receive(frame)
        if isinstance(event, RegisterToolsEvent) and event.login is not None and self._device is None:
            await self._become(event)
            if self._device is None:
                return
        if isinstance(event, IgnoredEvent) and event.kind == "text_input":
            await self._ask(frame)
        elif self._device is not None:
            await self._device.receive(frame)
        else:
            await self._take(event)

    async def refuse(self, frame: bytes) -> None:
        """Say that a frame is not taken, as there are too many.

        Raises:
            Gone: The client is gone.
        """
        # Whose id it is is worth no time for a large one.
        number = getattr(DIALECT.receive(frame), "id", None) if len(frame) <= _ID_LOOKED_FOR else None
        await self._registrar_peer.send_command(ErrorCommand(number, UNABLE, "too many messages in this time"))

    async def _become(self, asked: RegisterToolsEvent) -> None:
        """Make the client the device that it says it is; where it cannot be, it is told why and stays nobody."""
        try:
            if self._open_device is None:
                raise RegistrarRefused(_NO_LINES)
            self._device = await self._stack.enter_async_context(self._open_device(self._peer, asked))
        except RegistrarRefused as refused:
            log.warning("device not admitted", extra={"device": asked.mac or "", "reason": str(refused)})
            await self._registrar_peer.send_command(ErrorCommand(asked.id, UNABLE, str(refused)))

    async def _take(self, event: DeviceEvent) -> None:
        match event:
            case RegisterToolsEvent():
                await self._register(event)
            case BadRequestEvent():
                await self._registrar_peer.send_command(ErrorCommand(event.id, event.code, event.reason))
            case ResponseEvent():
                self._settle(event)
            case NotificationEvent():
                self._note(reports.write(event.method, event.params))
            case _:
                log.info("message ignored", extra={"event": type(event).__name__})

    async def _register(self, asked: RegisterToolsEvent) -> None:
        most = self._resources.settings.client_tools_max_count
        if len(asked.tools) > most:
            await self._registrar_peer.send_command(
                ErrorCommand(asked.id, UNABLE, f"at most {most} tools can be registered here")
            )
            return
        size = sum(json_length([tool.name, tool.description, tool.input_schema]) for tool in asked.tools)
        if not self._share.change(budgeted(size, len(asked.tools))):
            await self._registrar_peer.send_command(ErrorCommand(asked.id, UNABLE, ALL_FULL))
            return
        self._tools = asked.tools
        self.calls.controls = frozenset(tool.name for tool in asked.tools if tool.control)
        log.info("tools registered", extra={"tools": len(asked.tools), "named": asked.mac or ""})
        await self._registrar_peer.send_command(RegisteredCommand(asked.id, asked.provided))

    def _settle(self, answer: ResponseEvent) -> None:
        call = self._registrar_peer.call_of(answer.id)
        result = api.ToolAnswer(
            call, success=answer.error is None, result=answer.result, error=clip(answer.error or "")
        )
        if not self.calls.settle(result):
            log.info("answer to no pending call", extra={"id": answer.id})

    async def _ask(self, frame: bytes) -> None:
        request = api.receive(frame)
        if not isinstance(request, api.TextInput):
            await self._registrar_peer.send_command(ErrorCommand(None, NO_REQUEST, "text_input needs a text"))
        elif self._device is not None:
            await self._device.enter(request.text)
        else:
            await self._add(request.text)

    async def _add(self, text: str) -> None:
        if not await self._session.lives():
            await self._session.begin()
        if full := self.turns.add(Question(text, self._session.id, self._choices)):
            await self._registrar_peer.send_command(ErrorCommand(None, UNABLE, full))

    @property
    def _choices(self) -> Choices:
        terms = self._resources.terms
        return Choices(terms.temperature, terms.max_tokens, context=True, stream=True)

    async def _answer(self, question: Question) -> None:
        notes, self._notes = self._notes, []
        notes_text = reports.describe([DeviceReport(0, note) for note in notes])
        resources = replace(self._resources, llm=NarratedLlm(self._resources.llm, self._registrar_peer, notes_text))
        await GatewayTurn(resources, self._registrar_peer, self.calls, self._tools, question).run()

    def _note(self, text: str) -> None:
        self._notes = [*self._notes[1 - _MOST_NOTES :], text]


def open_registrar(
    resources: GatewayResources, open_device: OpenDevice | None = None
) -> Callable[[Client], AbstractAsyncContextManager[Registrar]]:
    """Return what serves a client that speaks JSON-RPC beside a block, which hands over its frames."""

    @asynccontextmanager
    async def serve(peer: Client) -> AsyncIterator[Registrar]:
        async with AsyncExitStack() as stack:
            registrar = Registrar(peer, resources, stack, open_device)
            await registrar.begin()
            await stack.enter_async_context(running("registrar controls", registrar.calls.run))
            await stack.enter_async_context(running("registrar turns", registrar.turns.run))
            yield registrar

    return serve
