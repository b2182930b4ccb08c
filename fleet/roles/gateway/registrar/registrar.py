"""The registrar dialect on a WebSocket: JSON-RPC frames, and texts to answer.

A WebSocket proves no MAC. So such a client is not a device: its tools, its history and its answers belong to its
connection, and a MAC in its messages is only logged. A client that sends a device's own MQTT credentials
(`params.auth`) is that device: its messages go through the broker to its worker (`device_connection.py`).

There is no audio: the client sends `text_input`, as all clients on this port do, and receives `mcp/ai/message`.
"""

import logging
from collections import deque
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
from fleet.roles.gateway.registrar.peer import ModelsWithThoughts, RegistrarCallbacks, RegistrarPeer
from fleet.roles.gateway.resources import GatewayResources
from fleet.roles.gateway.turns.client_tools import ALL_FULL, budgeted
from fleet.roles.gateway.turns.text_budget import TEXTS_OF_CONNECTION, TextBudget
from fleet.roles.gateway.turns.turn import Choices, GatewayTurn, Question
from fleet.roles.gateway.turns.turns import GatewayTurns
from fleet.wire import gateway as api
from fleet.wire.dialect_registrar import DIALECT
from fleet.wire.json_text import MOST_VALUES, has_too_many_values, json_length
from fleet.wire.jsonrpc import INVALID_REQUEST, SERVER_ERROR
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
"""Newest notifications and failures of controls that the next question's prompt holds."""
_LARGEST_WITH_ID = 8 * 1024
"""Bytes of the largest refused frame that is parsed for its id."""
_NO_DEVICES = "this gateway serves no devices, so no MAC can be proved here; register without params.auth"


class RegistrarDevice(Protocol):
    """A client that has proved to be a device."""

    async def receive(self, frame: bytes) -> None:
        """Pass on a frame of the dialect; raises `ClientGone` if the device's connection has ended."""

    async def enter(self, text: str) -> None:
        """Begin a turn of the device with a text; raises `ClientGone` if that is not possible."""


class RegistrarRefused(FleetError):
    """The credentials of a client do not prove the device, or the device cannot connect."""


OpenDevice = Callable[[Client, RegisterToolsEvent], AbstractAsyncContextManager[RegistrarDevice]]
"""Connects a client as the device whose credentials it sent; raises `RegistrarRefused` with the reason."""


class Registrar:
    """One client that speaks JSON-RPC.

    Args:
        client: Its connection.
        resources: Shared by all connections.
        stack: Resources that end with the connection are entered here.
        open_device: Connects it as a device; None if this gateway has no broker.
    """

    def __init__(
        self, client: Client, resources: GatewayResources, stack: AsyncExitStack, open_device: OpenDevice | None
    ) -> None:
        settings = resources.settings
        self._client = client
        self._rpc = RegistrarPeer(client)
        self._resources = resources
        self._stack = stack
        self._open_device = open_device
        self._device: RegistrarDevice | None = None
        self._session = ClientSession(resources.sessions, client.address)
        self._notes = deque[str](maxlen=_MOST_NOTES)
        self._tools: tuple[ToolSpec, ...] = ()
        self._tool_budget = stack.enter_context(closing(BudgetShare(resources.tool_budget)))
        self.calls = RegistrarCallbacks(
            self._rpc, settings.client_tool_timeout, settings.client_tool_result_queue_size, self._keep_note
        )
        texts = stack.enter_context(closing(BudgetShare(resources.text_budget, TEXTS_OF_CONNECTION)))
        self.turns = GatewayTurns(self._answer, TextBudget(texts))

    async def begin(self) -> None:
        """Begin the client's session."""
        await self._session.begin()

    async def receive(self, frame: bytes) -> None:
        """Process a frame; questions are only queued.

        Raises:
            ClientGone: The client has left.
        """
        if has_too_many_values(frame):
            await self._rpc.send_command(ErrorCommand(None, INVALID_REQUEST, f"a frame may hold {MOST_VALUES} values"))
            return
        event = DIALECT.receive(frame)
        if isinstance(event, RegisterToolsEvent) and event.login is not None and self._device is None:
            await self._connect_as_device(event)
            if self._device is None:
                return
        if isinstance(event, IgnoredEvent) and event.kind == "text_input":
            await self._ask(frame)
        elif self._device is not None:
            await self._device.receive(frame)
        else:
            await self._dispatch(event)

    async def refuse(self, frame: bytes) -> None:
        """Answer a frame beyond the rate limit with an error.

        Raises:
            ClientGone: The client has left.
        """
        # A large frame is not parsed only to repeat its id in the error.
        request_id = getattr(DIALECT.receive(frame), "id", None) if len(frame) <= _LARGEST_WITH_ID else None
        await self._rpc.send_command(ErrorCommand(request_id, SERVER_ERROR, "too many messages in this time"))

    async def _connect_as_device(self, asked: RegisterToolsEvent) -> None:
        """Connect the client as the device whose credentials it sent; if that fails, answer with the reason."""
        try:
            if self._open_device is None:
                raise RegistrarRefused(_NO_DEVICES)
            self._device = await self._stack.enter_async_context(self._open_device(self._client, asked))
        except RegistrarRefused as refused:
            log.warning("device not admitted", extra={"device": asked.mac or "", "reason": str(refused)})
            await self._rpc.send_command(ErrorCommand(asked.id, SERVER_ERROR, str(refused)))

    async def _dispatch(self, event: DeviceEvent) -> None:
        match event:
            case RegisterToolsEvent():
                await self._register(event)
            case BadRequestEvent():
                await self._rpc.send_command(ErrorCommand(event.id, event.code, event.reason))
            case ResponseEvent():
                self._settle(event)
            case NotificationEvent():
                self._keep_note(reports.write(event.method, event.params))
            case _:
                log.info("message ignored", extra={"event": type(event).__name__})

    async def _register(self, asked: RegisterToolsEvent) -> None:
        most = self._resources.settings.client_tools_max_count
        if len(asked.tools) > most:
            await self._rpc.send_command(
                ErrorCommand(asked.id, SERVER_ERROR, f"at most {most} tools can be registered here")
            )
            return
        size = sum(json_length([tool.name, tool.description, tool.input_schema]) for tool in asked.tools)
        if not self._tool_budget.change(budgeted(size, len(asked.tools))):
            await self._rpc.send_command(ErrorCommand(asked.id, SERVER_ERROR, ALL_FULL))
            return
        self._tools = asked.tools
        self.calls.controls = frozenset(tool.name for tool in asked.tools if tool.control)
        log.info("tools registered", extra={"tools": len(asked.tools), "claimed_mac": asked.mac or ""})
        await self._rpc.send_command(RegisteredCommand(asked.id, asked.provided))

    def _settle(self, answer: ResponseEvent) -> None:
        call = self._rpc.call_of(answer.id)
        result = api.ToolAnswer(
            call, success=answer.error is None, result=answer.result, error=clip(answer.error or "")
        )
        if not self.calls.settle(result):
            log.info("answer to no pending call", extra={"id": answer.id})

    async def _ask(self, frame: bytes) -> None:
        request = api.receive(frame)
        if not isinstance(request, api.TextInput):
            await self._rpc.send_command(ErrorCommand(None, INVALID_REQUEST, "text_input needs a text"))
        elif self._device is not None:
            await self._device.enter(request.text)
        else:
            await self._queue_question(request.text)

    async def _queue_question(self, text: str) -> None:
        if not await self._session.lives():
            await self._session.begin()
        if full := self.turns.add(Question(text, self._session.id, self._choices)):
            await self._rpc.send_command(ErrorCommand(None, SERVER_ERROR, full))

    @property
    def _choices(self) -> Choices:
        return Choices(None, None, context=True, stream=True)

    async def _answer(self, question: Question) -> None:
        question.reports = reports.describe([DeviceReport(0, note) for note in self._notes])
        self._notes.clear()
        resources = replace(self._resources, models=ModelsWithThoughts(self._resources.models, self._rpc))
        await GatewayTurn(resources, self._rpc, self.calls, self._tools, question, self.turns.consent).run()

    def _keep_note(self, text: str) -> None:
        self._notes.append(text)


def open_registrar(
    resources: GatewayResources, open_device: OpenDevice | None = None
) -> Callable[[Client], AbstractAsyncContextManager[Registrar]]:
    """Return a function that serves a registrar inside a block; the caller passes the frames to it."""

    @asynccontextmanager
    async def serve(client: Client) -> AsyncIterator[Registrar]:
        async with AsyncExitStack() as stack:
            registrar = Registrar(client, resources, stack, open_device)
            await registrar.begin()
            await stack.enter_async_context(running("registrar controls", registrar.calls.run))
            await stack.enter_async_context(running("registrar turns", registrar.turns.run))
            yield registrar

    return serve
