"""The data of a turn's event, from its journal and from what its worker knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fleet.core.ports import Message, TokenUsage
from fleet.wire.fleet_events import TurnData

LONGEST_TEXT = 2_000
"""Characters of a question or of an answer in an event; what is longer is cut."""
MOST_TOOLS = 16
LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What only the worker of a turn knows; see `TurnData`."""

    session: str = ""
    agent: str = ""
    language: str = ""
    typed: bool = False
    speech_ms: int = 0
    stages: Mapping[str, int] = field(default_factory=dict)


NO_FACTS = TurnFacts()


def turn_data(
    turn: str,
    messages: Sequence[Message],
    lines: Sequence[Message],
    usage: TokenUsage,
    facts: TurnFacts,
    *,
    recorded: bool,
) -> bytes:
    """Return the data as JSON.

    Args:
        turn: Its id.
        messages: All messages of the turn.
        lines: Those for the history: of an answer only what was spoken.
        usage: Its tokens.
        facts: Of its worker.
        recorded: Whether what was said belongs into the event.
    """
    said = [one.text.strip() for one in lines if one.role == "assistant"] if recorded else ()
    # What was said to the user first stands before his words, with a request of its own.
    asked = next((one.text for one in reversed(messages) if one.role == "user"), "")
    data = TurnData(
        turn=turn,
        session=facts.session,
        agent=facts.agent,
        language=facts.language,
        typed=facts.typed,
        user=asked[:LONGEST_TEXT] if recorded else "",
        answer=" ".join(text for text in said if text)[:LONGEST_TEXT],
        speech_ms=facts.speech_ms,
        stages=dict(facts.stages),
        tools=tuple(call.name[:LONGEST_NAME] for one in messages for call in one.calls)[:MOST_TOOLS],
        input_tokens=usage.input,
        cached_tokens=usage.cached,
        output_tokens=usage.output,
    )
    return msgspec.json.encode(data)
