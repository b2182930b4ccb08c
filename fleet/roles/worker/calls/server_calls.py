"""The server's tools during one turn of a device."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pydantic import JsonValue

from fleet.core.agent import AgentTools, Progress
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTools
from fleet.core.tool_gate import ToolGate
from fleet.core.tool_mix import ToolMix
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.metrics import calls as counted
from fleet.ground.tracing import tools as traced

log = logging.getLogger(__name__)

_NO_STORE = ServerResult("not done, the server cannot reach its store", failed=True)


class ServerCalls:
    """Runs the server's tools for a device. A changed persona is in Redis before the model gets the tool's result.

    Args:
        tools: The server's tools.
        save: Stores the device's persona; raises `Fenced` or `Unavailable` on failure.
        caller: The device's session, time zone and persona.
    """

    def __init__(self, tools: ServerTools, save: Callable[[Persona], Awaitable[None]], caller: Caller) -> None:
        self._tools = tools
        self._save_persona = save
        self._caller = caller
        self._writing = asyncio.Lock()

    def mix_with(self, own: AgentTools, before: Progress, gate: ToolGate | None = None) -> ToolMix:
        """Return the device's tools together with the server's.

        Args:
            own: The device's tools.
            before: The progress of the turn in its journal. The calls at its end were written before they began; the
                worker that began the turn may have made them.
            gate: Of the turn; without one every call is made.
        """
        calls = before.messages[-1].calls if before.messages else ()
        return ToolMix(own, self._tools, self._call, [call.id for call in calls], gate)

    async def _call(self, call: str, name: str, arguments: dict[str, JsonValue]) -> ServerResult:
        clock, persona = asyncio.get_running_loop().time, self._caller.persona
        begun = clock()
        with traced.tool_span(name, call, arguments) as note:
            result = await self._tools.call(name, arguments, self._caller)
            note("error" if result.failed else "ok", result.value)
        counted.end("server", "error" if result.failed else "ok", clock() - begun)
        if self._caller.persona != persona and not await self._save():
            self._caller.persona, result = persona, _NO_STORE
        log.info(
            "server tool called",
            extra={
                "tool": name,
                "outcome": "error" if result.failed else "ok",
                "seconds": round(clock() - begun, 3),
                "pii": {"arguments": arguments, "result": result.value},
            },
        )
        return result

    async def _save(self) -> bool:
        async with self._writing:  # of two concurrent changes the second write has both
            try:
                await self._save_persona(self._caller.persona)
            except (Fenced, Unavailable) as error:
                # If this worker lost the shard, the turn ends at its next write.
                log.warning("persona not saved", extra={"reason": str(error)})
                return False
        return True
