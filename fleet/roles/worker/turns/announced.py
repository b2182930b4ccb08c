"""A text of an operator or a reminder that a device speaks: a turn whose answer is that text, without a chat model."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from fleet.core.ports import USUAL, LlmEvent, LlmOptions, Message, TextDelta, ToolOffer
from fleet.wire.edge_messages import SayEvent, UtteranceEvent

_REQUEST: Final = "(An operator has the following said to me.)"
"""What stands in the history in place of a user's words, so that the model can speak about the text later."""
_REMINDER: Final = "(A reminder that I asked for is due.)"
"""The same of a reminder."""


class FixedAnswer:
    """Stands in for a chat model; it answers with a text.

    Args:
        text: The answer.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        yield TextDelta(self._text)


def lead_of(text: str) -> tuple[Message, Message]:
    """Return what stands in the history before a user's words if a text was spoken before their answer."""
    return Message("user", _REQUEST), Message("assistant", text)


def announce(said: SayEvent) -> UtteranceEvent:
    """Return the utterance that a worker answers with the text; its turn runs only in the session of the event."""
    return UtteranceEvent(
        device=said.device,
        session=said.session,
        turn=said.turn,
        text=_REMINDER if said.reminder else _REQUEST,
        language=said.language,
        typed=True,
        polite=said.polite,
    )
