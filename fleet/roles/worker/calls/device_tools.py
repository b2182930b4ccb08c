"""The tools of a device, as the agent loop calls them."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.tool_gate import ToolGate
from fleet.core.tool_kinds import QUICK, ToolKind, kind_of
from fleet.core.tool_policy import ToolSource
from fleet.core.toolbox import Prepared, Refusal, Toolbox
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.metrics import calls as counted
from fleet.ground.tracing import tools as traced
from fleet.roles.worker.calls.call_terms import CallTerms
from fleet.roles.worker.calls.device_calls import DeviceCalls, Outcome
from fleet.roles.worker.calls.gate import CallGate
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.camera import initialize_command
from fleet.roles.worker.sessions.discovery import new_request_id
from fleet.wire import dialects
from fleet.wire.messages import CallToolCommand

log = logging.getLogger(__name__)

MOST_SLOW = 4
"""Most slow calls in one turn; each extends the turn's deadline."""

_TOO_MANY = Outcome("not_sent", "it takes long and was asked for too often")


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """What a turn needs to reach its device."""

    resources: WorkerResources
    calls: DeviceCalls
    shard: Shard
    session: SessionRecord

    @property
    def source(self) -> ToolSource:
        """Whose the device's tools are."""
        return "device" if dialects.find(self.session.dialect).capabilities.firmware_tools else "program"


async def renew_camera_token(resources: WorkerResources, shard: Shard, mac: str, dialect: str, tool: str) -> None:
    """Before a tool that takes a photo send the device a fresh camera token: the old one may have expired."""
    if not (dialects.find(dialect).capabilities.camera and kind_of(tool).camera):
        return
    with suppress(Unavailable, Overloaded):  # the earlier token may still be valid
        fresh = initialize_command(resources, await resources.devices.read(mac), new_request_id())
        if fresh.vision_url:
            shard.publish(mac, fresh, dialect)


class SlowCallLimit(Protocol):
    """The limit of a turn, whose clock stands still during slow calls (`turns.deadline.TurnDeadline`)."""

    def slow_call(self, seconds: float) -> AbstractAsyncContextManager[None]: ...


class DeviceTools:
    """The tools of one device during one turn.

    Args:
        toolbox: The device's tools, under the model's names.
        link: To the device.
        turn: The turn's id, the first half of each call's idempotency key.
        deadline: Of the turn; its clock stands still during slow calls.
        seconds: Longest wait for the answer of a tool that is not known to be slow.
        gate: Of the turn; without one every call is made.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        link: DeviceLink,
        turn: str,
        deadline: SlowCallLimit,
        seconds: float,
        gate: ToolGate | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._link = link
        self._session = link.session
        self._turn = turn
        self._deadline = deadline
        self._seconds = seconds
        self._gate = gate or ToolGate()
        self._order = CallGate()
        self._slow = 0

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return self._toolbox.offers

    @property
    def question(self) -> str:
        return self._gate.question

    async def call(self, call: ToolCall) -> str:
        """Run a call; return its outcome in words for the model.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis is away: what the model would be told now could be false when the turn is taken up again.
        """
        prepared = self._toolbox.prepare(call)
        if isinstance(prepared, Refusal):
            counted.refuse("device")
            log.info("tool call refused", extra={"tool": call.name[:64], "pii": {"reason": prepared.reason}})
            return prepared.reason
        name, clock = prepared.tool.name, asyncio.get_running_loop().time
        if text := await self._gate.check(call, name, self._link.source, prepared.arguments):
            log.info("tool call held back", extra={"tool": name, "pii": {"reason": text}})
            return text
        begun = clock()
        kind = kind_of(name) if self._link.source == "device" else QUICK
        with traced.tool_span(name, call.id, prepared.arguments) as note:
            outcome = await self._schedule(prepared, call.id, kind)
            note(outcome.status, outcome.text)
        counted.end("device", outcome.status, clock() - begun)
        log.info(
            "tool called",
            extra={
                "tool": name,
                "outcome": outcome.status,
                "seconds": round(clock() - begun, 3),
                "pii": {"arguments": prepared.arguments, "result": outcome.text},
            },
        )
        return outcome.for_model()

    async def _schedule(self, prepared: Prepared, call_id: str, kind: ToolKind) -> Outcome:
        terms = CallTerms(
            self._turn,
            call_id,
            max(kind.seconds, self._seconds),
            leaves=kind.leaves,
            fails_if_answered=kind.fails_if_answered,
            control=prepared.tool.control,
            dialect=self._session.dialect,
        )
        if not kind.slow:
            async with self._order.side_by_side():
                return await self._call(prepared, terms)
        self._slow += 1
        if self._slow > MOST_SLOW:
            return _TOO_MANY
        async with self._order.alone(), self._deadline.slow_call(terms.seconds):
            return await self._call(prepared, terms)

    async def _call(self, prepared: Prepared, terms: CallTerms) -> Outcome:
        command = CallToolCommand(0, prepared.tool.name, prepared.arguments, self._session.id)
        link, mac = self._link, self._session.device
        await renew_camera_token(link.resources, link.shard, mac, self._session.dialect, command.name)
        return await link.calls.call(link.shard, mac, command, terms)
