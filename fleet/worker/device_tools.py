"""A device's tools as the agent calls them."""

import asyncio
import logging
from collections.abc import Sequence

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.toolbox import Refusal, Toolbox
from fleet.errors import Overloaded, Unavailable
from fleet.store.sessions import Session
from fleet.wire.words import CallTool
from fleet.worker.calls import DeviceCalls, Outcome
from fleet.worker.shard import Shard

log = logging.getLogger(__name__)


class DeviceTools:
    """The tools of one device during one turn.

    Args:
        toolbox: What it can do, under the model's names.
        calls: Sends the calls.
        shard: The device's.
        session: The device's.
        turn: The turn's id, the first half of each call's idempotency key.
        seconds: Longest wait for an answer.
    """

    def __init__(
        self, toolbox: Toolbox, calls: DeviceCalls, shard: Shard, session: Session, turn: str, *, seconds: float
    ) -> None:
        self._toolbox = toolbox
        self._calls = calls
        self._shard = shard
        self._session = session
        self._turn = turn
        self._seconds = seconds

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return self._toolbox.offers

    async def call(self, call: ToolCall) -> str:
        prepared = self._toolbox.prepare(call)
        if isinstance(prepared, Refusal):
            log.info("tool call refused", extra={"tool": call.name, "reason": prepared.reason})
            return prepared.reason
        clock = asyncio.get_running_loop().time
        begun = clock()
        order = CallTool(0, prepared.tool.name, prepared.arguments, self._session.id)
        try:
            outcome = await self._calls.call(
                self._shard, self._session.device, order, f"{self._turn}:{call.id}", self._seconds
            )
        except (Unavailable, Overloaded) as error:
            log.warning("tool call failed", extra={"tool": prepared.tool.name, "reason": str(error)})
            outcome = Outcome("not_sent", "the server cannot reach its store")
        log.info(
            "tool called",
            extra={
                "tool": prepared.tool.name,
                "outcome": outcome.status,
                "seconds": round(clock() - begun, 3),
                "pii": {"arguments": prepared.arguments, "result": outcome.text},
            },
        )
        return outcome.for_model()
