"""The tools of one turn: those of the client and those of the server, under names that the model accepts."""

import re
from collections.abc import Sequence
from dataclasses import replace

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.tool_gate import DENIED, ToolGate
from fleet.core.toolbox import MOST_OFFERS, PROGRAM, Prepared, Refusal, Toolbox, no_such_tool, read_arguments
from fleet.roles.gateway.turns.round import Ready, ServerCall
from fleet.wire.mcp import ToolSpec

_UNREADABLE = Refusal(
    "error: INVALID_TOOL_PARAMETERS, not done, the arguments are no valid JSON object, or too long; write them again",
    "INVALID_TOOL_PARAMETERS",
)


class TurnToolset:
    """All tools of one turn.

    Args:
        clients: The client's tools; their names may have dots, which models do not accept.
        servers: The server's tools; a tool of the client hides one of the same name.
        gate: Of the turn; without one every tool is offered.
    """

    def __init__(self, clients: Sequence[ToolSpec], servers: Sequence[ToolOffer], gate: ToolGate | None = None) -> None:
        gate = gate or ToolGate()
        own = {tool.name for tool in clients}
        all_servers = {offer.name: offer for offer in servers if offer.name not in own}
        self._servers = {name: offer for name, offer in all_servers.items() if not gate.hides(name, "server")}
        self._clients = Toolbox(
            clients, taken=all_servers, limits=PROGRAM, hides=lambda name: gate.hides(name, "program")
        )
        self._hidden = self._clients.hidden | (all_servers.keys() - self._servers.keys())
        self._names = frozenset(offer.name for offer in self._clients.offers)
        both = (*self._clients.offers, *self._servers.values())
        self.offers: Sequence[ToolOffer] = both[:MOST_OFFERS]
        self.left_out = self._clients.left_out + len(both) - len(self.offers)
        """Number of tools that are not offered because there are too many."""

    def prepare(self, call: ToolCall) -> Ready:
        """Check a call; never raises."""
        if call.name in self._names:
            return self._clients.prepare(call)
        if call.name in self._hidden:
            return Refusal(DENIED, "TOOL_NOT_FOUND")
        if call.name not in self._servers:
            return self._prepare_dotted(call)
        arguments = read_arguments(call.arguments) if PROGRAM.reads(call.arguments) else None
        return _UNREADABLE if arguments is None else ServerCall(call.name, arguments)

    def _prepare_dotted(self, call: ToolCall) -> Prepared | Refusal:
        """Prepare a call by the tool's original name, as some models read it in a description and use it."""
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name.removeprefix("self."))
        ready = self._clients.prepare(replace(call, name=plain))
        if isinstance(ready, Prepared) and ready.tool.name == call.name:
            return ready
        return no_such_tool(call.name, (offer.name for offer in self.offers))
