"""Conversations: what users said and what was answered."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from fleet.wire.control.shapes import NUMBER, GivenTime, Shape, Time

Line = Literal["question", "answer"]


class RecordedConversation(Shape):
    """A conversation: one session of a device, or one typed text without a session."""

    id: int
    device: str
    agent: str
    started: Time
    ended: Time
    turns: int


class ConversationFilter(Shape):
    """Which conversations are wanted. `before` ends the time in which they began, `since` begins that of their end."""

    device: Annotated[str, Field(max_length=40)] = ""
    agent: Annotated[str | None, Field(max_length=63)] = None
    since: GivenTime | None = None
    before: GivenTime | None = None


class ConversationSearch(ConversationFilter):
    """A page of conversations. `words`: text that occurs in a question or an answer."""

    words: Annotated[str, Field(max_length=200)] = ""
    cursor: Annotated[str, Field(max_length=2_000)] = ""
    limit: Annotated[int, Field(ge=1, le=500), NUMBER] = 50


class ConversationTurn(Shape):
    """One question with its answer.

    `stages` has milliseconds: `heard` from the last speech to the text, from there `first_token`, `first_sentence`,
    `written`; `first_audio` from the last speech to the first sound of the answer.
    """

    id: int
    turn: str
    at: Time
    question: str
    answer: str
    language: str
    outcome: str
    typed: bool
    stages: dict[str, int]
    tools: list[str]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    speech_ms: int
    spoken_ms: int
    redacted: Annotated[list[Line], Field(default_factory=list)]
    """The lines that were taken back; their text is empty."""


class RedactedLines(Shape):
    """Which lines of a turn are deleted: what the user said, what was answered, or both."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lines": ["question"]}]})
    lines: Annotated[list[Line], Field(min_length=1, max_length=2)]


class ConversationTurns(Shape):
    """A conversation with its turns, the oldest first. `next` is the value of `after` for more, null at the end."""

    conversation: RecordedConversation
    turns: list[ConversationTurn]
    next: int | None = None


class Erased(Shape):
    """How many conversations, events and rows of usage of a device were deleted."""

    conversations: int
    events: int
    usage: int
