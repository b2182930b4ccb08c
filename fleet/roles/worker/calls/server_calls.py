"""The server's tools during one turn of a device."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pydantic import JsonValue

from fleet.core.agent import AgentTools, Progress
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTools
from fleet.core.tool_mix import ToolMix
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.metrics import calls as counted
from fleet.ground.tracing import tools as traced

log = logging.getLogger(__name__)

_NO_STORE = ServerResult("not done, the server cannot reach its store", failed=True)


class ServerCalls:
    """Runs the server's tools for a device. What they change of its persona is in Redis before the model knows.

    Args:
        tools: Those that there are.
        keep: Keeps the device's persona; raises `Fenced` or `Unavailable` where it cannot.
        caller: For whom they run.
    """

    def __init__(self, tools: ServerTools, keep: Callable[[Persona], Awaitable[None]], caller: Caller) -> None:
        self._tools = tools
        self._keep_persona = keep
        self._caller = caller
        self._writing = asyncio.Lock()

    def beside(self, own: AgentTools, before: Progress) -> ToolMix:
        """Return the device's tools and the server's.

        Args:
            own: The device's.
            before: How far the turn had got. The calls that it ends with were written down before they began, and who
                left the turn may have made them.
        """
        calls = before.messages[-1].calls if before.messages else ()
        return ToolMix(own, self._tools, self._call, [call.id for call in calls])

    async def _call(self, call: str, name: str, arguments: dict[str, JsonValue]) -> ServerResult:
        clock, persona = asyncio.get_running_loop().time, self._caller.persona
        begun = clock()
        with traced.tool_span(name, call, arguments) as note:
            result = await self._tools.call(name, arguments, self._caller)
            note("error" if result.failed else "ok", result.value)
        counted.end("server", "error" if result.failed else "ok", clock() - begun)
        if self._caller.persona != persona and not await self._keep():
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

    async def _keep(self) -> bool:
        async with self._writing:  # of two changes at once the second has both
            try:
                await self._keep_persona(self._caller.persona)
            except (Fenced, Unavailable) as error:
                # The turn of a worker that lost the shard ends at its next step.
                log.warning("persona not kept", extra={"reason": str(error)})
                return False
        return True
