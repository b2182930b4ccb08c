"""The tool calls of a turn: the server's tools run in this process, the client's tools through callbacks.

If the API's document requires an error message for a failed call (sections 7.7 and 11.5), the turn ends with it. The
turn first waits for all calls of the message: the client could take a later result for an answer to its next request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from fleet.core.ports import Message, ToolCall, ToolOffer
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTools
from fleet.core.tool_gate import ToolGate
from fleet.core.toolbox import Prepared, Refusal
from fleet.ground.metrics import calls as counted
from fleet.ground.tracing import tools as traced
from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.failure import RequestFailed
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.roles.gateway.turns.round import Round, ServerCall
from fleet.roles.gateway.turns.toolset import TurnToolset
from fleet.wire.gateway_messages import ToolCallDone

log = logging.getLogger(__name__)

LARGEST_RESULT = 20_000
"""Characters of a tool's result for the model."""
MOST_REPAIRS = 1
"""How often in a turn the model may correct unusable arguments."""

_LATE = 0.05
"""Seconds. Tools have the same time limit themselves: a failure this shortly before it is a time-out."""
_TIMEOUT = "Tool execution timeout"
_DROPPED = "error: not done"


class TurnTools:
    """The agent's tools in one turn.

    Args:
        toolset: The tools.
        server: Runs the server's tools.
        callbacks: Call the client's tools.
        peer: The client.
        caller: The client, for the server's tools.
        seconds: Longest time of a server's tool.
    """

    def __init__(
        self,
        toolset: TurnToolset,
        server: ServerTools,
        callbacks: Callbacks,
        peer: Client,
        caller: Caller,
        seconds: float,
    ) -> None:
        self._toolset = toolset
        self._server = server
        self._callbacks = callbacks
        self._peer = peer
        self._caller = caller
        self._seconds = seconds
        self._round = Round({}, peer, callbacks.most)
        self._repairs = 0
        self._fault: RequestFailed | ClientGone | None = None
        self.done: list[dict[str, JsonValue]] = []
        """The calls in the form of `llm_response`."""
        self.on_persona: Callable[[Persona], Awaitable[None]] | None = None
        """Called when a tool has changed the caller's persona."""
        self.gate = ToolGate()
        """Of the turn; this one lets every call through."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return self._toolset.offers

    @property
    def question(self) -> str:
        return self.gate.question

    def begin(self, message: Message) -> None:
        """Check the calls of a message before they are made.

        Raises:
            RequestFailed: One of them names an unknown tool, or has unusable arguments again; none is made then.
        """
        ready = {call.id: self._toolset.prepare(call) for call in message.calls}
        self._round = Round(ready, self._peer, self._callbacks.most)
        refusals = self._round.refusals
        for refusal in refusals:
            counted.refuse("client")
            log.info("tool call refused", extra={"fault": refusal.fault, "pii": {"reason": refusal.reason}})
            if refusal.fault == "TOOL_NOT_FOUND":
                raise RequestFailed("TOOL_NOT_FOUND", "Tool not found", refusal.reason)
        self._repairs += bool(refusals)
        if self._repairs > MOST_REPAIRS:
            raise RequestFailed("INVALID_TOOL_PARAMETERS", "Invalid tool parameters", refusals[0].reason)

    def check(self) -> None:
        """Raise the failure of the round, if there is one.

        Raises:
            RequestFailed: A failed call ends the turn.
            ClientGone: The client has left.
        """
        if self._fault is not None:
            raise self._fault

    async def call(self, call: ToolCall) -> str:
        ready = self._round.take(call.id)
        if isinstance(ready, Refusal):
            return ready.reason
        try:
            if isinstance(ready, ServerCall):
                if outcome := await self.gate.check(call, ready.name, "server", ready.arguments):
                    self._round.server_done()
                    return outcome
                return await self._call_server(call.id, ready)
            await self._round.until_turn_of(call.id)
            try:
                if outcome := await self.gate.check(call, ready.tool.name, "program", ready.arguments):
                    return outcome
                # The turn ends with an error already, so no further tool of the client may act.
                return _DROPPED if self._fault is not None else await self._call_client(call.id, ready)
            finally:
                self._round.client_done(call.id)
        except ClientGone as gone:
            self._fault = gone
            return _DROPPED

    async def _call_server(self, call_id: str, call: ServerCall) -> str:
        # The loop's clock may have a resolution of a millisecond; many of these tools need less.
        persona, begun = self._caller.persona, perf_counter()
        try:
            with traced.tool_span(call.name, call_id, call.arguments) as note:
                async with asyncio.timeout(self._seconds):
                    result = await self._server.call(call.name, call.arguments, self._caller)
                note("error" if result.failed else "ok", result.value)
        except TimeoutError:
            result = ServerResult(_TIMEOUT, failed=True)
        finally:
            self._round.server_done()
        took = perf_counter() - begun
        if result.failed and took >= self._seconds - _LATE:
            details = f"{call.name}: no result in {self._seconds:g} s"
            self._fail(RequestFailed("TOOL_EXECUTION_FAILED", _TIMEOUT, details))
        await self._send_result(call, result, took)
        if self._caller.persona != persona and self.on_persona:
            await self.on_persona(self._caller.persona)
        text = _write(result.value)
        return f"error: {text}" if result.failed else text

    async def _send_result(self, call: ServerCall, result: ServerResult, took: float) -> None:
        counted.end("server", "error" if result.failed else "ok", took)
        log.info("server tool called", extra={"tool": call.name, "failed": result.failed, "seconds": round(took, 3)})
        self._note(call.name, call.arguments, success=not result.failed)
        await self._peer.send(
            ToolCallDone(
                tool_name=call.name,
                arguments=call.arguments,
                result=_as_object(result),
                success=not result.failed,
                duration_ms=round(took * 1000, 3),
            )
        )

    async def _call_client(self, call_id: str, ready: Prepared) -> str:
        await self._round.announce(call_id)
        name = ready.tool.name
        begun = perf_counter()
        with traced.tool_span(name, call_id, ready.arguments) as note:
            answer = await self._callbacks.call(name, ready.arguments)
            outcome = "unknown" if answer is None else "ok" if answer.success else "error"
            note(outcome, answer.result if answer else "")
        counted.end("client", outcome, perf_counter() - begun)
        log.info("client tool called", extra={"tool": name, "answered": answer is not None})
        self._note(name, ready.arguments, success=answer is not None and answer.success)
        if answer is None:
            self._fail(RequestFailed("TOOL_RESULT_TIMEOUT", _TIMEOUT, f"{name}: the client sent no result in time"))
            return _DROPPED
        if not answer.success:
            details = f"{name}: {answer.error or 'the client gave no reason'}"
            self._fail(RequestFailed("TOOL_EXECUTION_FAILED", "Tool execution failed", details[:LARGEST_RESULT]))
        return _write(answer.result)

    def _fail(self, fault: RequestFailed) -> None:
        """Store the first fault, which becomes the error message."""
        self._fault = self._fault or fault

    def _note(self, name: str, arguments: dict[str, JsonValue], *, success: bool) -> None:
        self.done.append({"tool_name": name, "arguments": arguments, "success": success})


def _as_object(result: ServerResult) -> dict[str, JsonValue]:
    """Return a result as the JSON object that the API's document requires."""
    if result.failed:
        return {"error": result.value}
    return result.value if isinstance(result.value, dict) else {"result": result.value}


def _write(value: JsonValue) -> str:
    if isinstance(value, str):
        text = value
    else:
        try:
            text = to_json(value).decode()
        except (PydanticSerializationError, ValueError):
            text = str(value)
    return text if len(text) <= LARGEST_RESULT else f"{text[:LARGEST_RESULT]}… (cut off)"
