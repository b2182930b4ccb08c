"""How the devices of a crowd do what their tools are asked for."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from fleet.workbench.sim.crowd.ledger import Ledger, Told
from fleet.workbench.sim.crowd.member import Member
from fleet.workbench.sim.crowd.shares import LATE_SECONDS, Shares
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.timing import Timing
from fleet.workbench.sim.tools.mcp_server import PendingCall
from fleet.workbench.sim.tools.tool import Restart

_TIMING: Final = Timing()
REFUSAL: Final = "Failed to reach the codec"
"""What a device says of a call that is to fail."""


class ToolCalls:
    """Answers requests to tools.

    Args:
        shares: How calls end; may be replaced while it runs.
        seed: Of the draws.
        ledger: Takes every call.
        chances: Draw how long tools take.
        restart: Restarts a device.
        upgrade: Installs an image on a device; returns whether it came.
    """

    def __init__(
        self,
        shares: Shares,
        seed: int,
        ledger: Ledger,
        chances: random.Random,
        restart: Callable[[Member], None],
        upgrade: Callable[[Member, str], Awaitable[bool]],
    ) -> None:
        self.shares = shares
        self._seed, self._ledger, self._chances = seed, ledger, chances
        self._restart, self._upgrade = restart, upgrade

    def receive(self, device: Member, request: JsonObject) -> Coroutine[Any, Any, None] | None:
        """Answer a request at once, or return the work that does it."""
        result = device.kind.receive(request, device.board)
        if isinstance(result, PendingCall):
            fate = self.shares.fate(self._seed, device.mac, self._ledger.nth(device.mac))
            arguments = json.dumps(dict(result.arguments), sort_keys=True)
            told = Told(result.tool.name, arguments, fate)
            self._ledger.call(device.mac, told)
            return self._run(device, result, told)
        if result is not None:
            device.reply(result)
        return None

    async def _run(self, device: Member, call: PendingCall, told: Told) -> None:
        await asyncio.sleep(LATE_SECONDS if told.fate == "late" else self._chances.uniform(*_TIMING.tool))
        if told.fate == "silent":
            return
        if told.fate == "error":
            device.reply(device.kind.refuse(call, REFUSAL))
            return
        outcome, reply = await device.kind.run(call, device.board)
        if isinstance(outcome, Restart):
            # A restart never answers. An upgrade answers `true` if the image did not come.
            if outcome.firmware and not await self._upgrade(device, outcome.firmware):
                device.reply(reply)
            else:
                self._restart(device)
            return
        device.reply(reply)
