"""A chat model that costs next to nothing: what it says is in the user's words."""

import time
from collections.abc import AsyncGenerator, Sequence

from fleet.core.ports import USUAL, CallsAsked, LlmEvent, LlmOptions, Message, TextDelta, ToolCall, ToolOffer
from fleet.core.situation import words_of

TOOL = "set_volume"
_ARGUMENTS = '{"volume": 50}'
_PIECES = ("It ", "is ", "done ", "now. ", "Is ", "there ", "anything ", "else ", "to ", "do?")


def words(calls: int, name: str) -> str:
    """Return what a user says to be answered after so many tool calls, which the model asks for at once."""
    return f"{calls} {name}"


class ScriptedModel:
    """Asks for as many calls as the user's first word says, then answers with two sentences.

    Args:
        waited: Takes how long each turn waited for the outcomes of its calls, in seconds.
    """

    def __init__(self, waited: list[float]) -> None:
        self._waited = waited
        self._asked: dict[str, float] = {}

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        now = time.perf_counter()
        said = next(words_of(message.text) for message in reversed(messages) if message.role == "user")
        begun = self._asked.pop(said, None)
        calls = int(said.partition(" ")[0])
        name = next((tool.name for tool in tools if TOOL in tool.name), None)
        if begun is None and calls and name:
            self._asked[said] = now
            yield CallsAsked(tuple(ToolCall(f"call-{number}", name, _ARGUMENTS) for number in range(calls)))
            return
        if begun is not None:
            self._waited.append(now - begun)
        for piece in _PIECES:
            yield TextDelta(piece)
