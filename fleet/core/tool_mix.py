"""A device's or a client's own tools and the server's as one set for the agent."""

import json
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from pydantic import JsonValue

from fleet.core.agent import AgentTools
from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.server_tools import ServerResult, ServerTools
from fleet.core.tool_gate import DENIED, ToolGate
from fleet.core.toolbox import MOST_OFFERS, PROGRAM, Refusal, Toolbox, no_such_tool
from fleet.wire.mcp import ToolSpec, clip

log = logging.getLogger(__name__)

INTERRUPTED = "error: unknown whether it was done, the call was interrupted; it was not made again"

Run = Callable[[str, str, dict[str, JsonValue]], Awaitable[ServerResult]]
"""Runs a tool of the server, given the call's id, the name in the tool's offer, and the arguments."""


class ToolMix:
    """The tools of one turn. Own tools keep their names; a server tool with the same name gets another one.

    The server's offers are read once: in one turn a name means one tool.

    Args:
        own: The device's or the client's.
        server: The server's.
        run: Runs one of the server's.
        begun: Ids of calls that an earlier owner of this turn may have made. Of these, only calls of repeatable server
            tools are run.
        gate: Of the turn; without one every call is made.
    """

    def __init__(
        self, own: AgentTools, server: ServerTools, run: Run, begun: Collection[str] = (), gate: ToolGate | None = None
    ) -> None:
        self._own = own
        self._server = server
        self._run = run
        self._begun = set(begun)
        self._gate = gate = gate or ToolGate()
        specs = [_spec(offer) for offer in server.offers]
        taken = {offer.name for offer in own.offers}
        self._box = Toolbox(specs, taken, PROGRAM, validates=False, hides=lambda name: gate.hides(name, "server"))
        self._names = frozenset(offer.name for offer in self._box.offers)
        left_out = self._box.left_out + max(0, len(own.offers) + len(self._names) - MOST_OFFERS)
        if left_out:
            log.warning("too many server tools to offer", extra={"left_out": left_out})

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return (*self._own.offers, *self._box.offers)[:MOST_OFFERS]

    @property
    def question(self) -> str:
        return self._gate.question

    async def call(self, call: ToolCall) -> str:
        if call.name in self._names:
            return await self._call_server(call)
        if call.name in self._box.hidden | self._gate.hidden:
            return DENIED
        if not any(call.name == offer.name for offer in self._own.offers):
            return no_such_tool(call.name, [offer.name for offer in self.offers]).reason
        return await self._own.call(call)

    async def _call_server(self, call: ToolCall) -> str:
        prepared = self._box.prepare(call)
        if isinstance(prepared, Refusal):
            return prepared.reason
        name = prepared.tool.name
        if outcome := await self._gate.check(call, name, "server", prepared.arguments):
            return outcome
        if call.id in self._begun:
            # Another call of this turn may have the same id.
            self._begun.discard(call.id)
            if not self._server.repeatable(name):
                return INTERRUPTED
        return outcome_text(await self._run(call.id, name, prepared.arguments))


def outcome_text(result: ServerResult) -> str:
    """Return a result as text for the model."""
    value = result.value
    text = clip(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return f"error: {text}" if result.failed else text


def _spec(offer: ToolOffer) -> ToolSpec:
    return ToolSpec(name=offer.name, description=offer.description, input_schema=offer.parameters)
