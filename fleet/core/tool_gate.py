"""Between the model's wish for a call and the call: the policy, and the user's yes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pydantic import JsonValue

from fleet.core.ports import ToolCall
from fleet.core.tool_policy import ToolPolicy, ToolSource

DENIED = "error: not done, this tool is not allowed here; do not call it again, and say so"
WAITS = "not done yet: the server asks the user now, and makes the call itself if the user says yes"
NO_VOICE = "error: not done, this needs the user's spoken yes, and here nobody can be asked; do not call it again"
ONE_AT_A_TIME = "error: not done, the user is being asked about another call; call it again after that"

AskUser = Callable[[ToolCall, str, Mapping[str, JsonValue]], Awaitable[str]]
"""Keeps a call of a tool, by its announced name and arguments, for the user's yes; returns the question."""


EVERYTHING: Final = ToolPolicy()


class ToolGate:
    """Lets the calls of one turn through, or not.

    Args:
        policy: What is allowed.
        ask: Asks the user; None if that is impossible in this turn.
        confirmed: The call to which the user has just said yes; None for none.
    """

    def __init__(
        self, policy: ToolPolicy = EVERYTHING, ask: AskUser | None = None, confirmed: ToolCall | None = None
    ) -> None:
        self.policy = policy
        """What is allowed."""
        self._ask = ask
        self._confirmed = confirmed
        self._asking = False
        self.question = ""
        """What the user is asked at the end of the turn; empty for nothing."""
        self.hidden: frozenset[str] = frozenset()
        """Names under which the model may still know the device's or client's tools that are kept from it."""

    def hides(self, tool: str, source: ToolSource) -> bool:
        """Whether a tool is not offered to the model."""
        return self.policy.decide(tool, source) == "deny"

    async def check(self, call: ToolCall, tool: str, source: ToolSource, arguments: Mapping[str, JsonValue]) -> str:
        """Return the outcome of a call that is not made now, as text for the model; empty if it may be made.

        Args:
            call: As the model asked for it.
            tool: Name of the tool as it was announced.
            source: Whose tool it is.
            arguments: As they would be sent.
        """
        decision = self.policy.decide(tool, source)
        if decision == "deny":
            return DENIED
        if self._confirmed == call:
            self._confirmed = None  # a later call of the turn may be the same
            return ""
        if decision == "allow":
            return ""
        if self._ask is None:
            return NO_VOICE
        if self._asking:
            return ONE_AT_A_TIME
        self._asking = True
        self.question = await self._ask(call, tool, arguments)
        return WAITS
