"""What edges and shards write into each other's inboxes. Text only: audio never leaves an edge.

A shard's inbox belongs to the shard and outlives its owner; an edge's belongs to the edge's process. A message that a
reader does not know is skipped, so that versions can run side by side during a rollout.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fleet.wire.messages import ListenMode


class _EdgeMessage(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    device: str
    session: str


class OpenSessionCommand(_EdgeMessage):
    """To an edge: expect packets of this session; any other session of the device is over."""

    kind: Literal["session_opened"] = "session_opened"
    dialect: str
    shard: int
    ssrc: int
    key: str
    """32 hex digits."""
    uplink_rate: int
    uplink_frame_ms: int
    downlink_rate: int
    downlink_frame_ms: int
    aec: bool = False
    clears_on_stop: bool = False
    """Whether the device throws away what it has not played when speech is over (`fleet.core.firmware_traits`)."""
    language: str = ""
    """ISO 639-1 code for what the server says before it has heard anybody; empty from a worker that does not know."""
    ends_presses: bool = False
    """The firmware loses wake words while the channel is open: end the session after each push-to-talk turn."""


class CloseSessionCommand(_EdgeMessage):
    """To an edge: forget the session and stop its audio at once."""

    kind: Literal["session_closed"] = "session_closed"


class StartListeningCommand(_EdgeMessage):
    """To an edge: the microphone is open."""

    kind: Literal["listening_started"] = "listening_started"
    mode: ListenMode


class StopListeningCommand(_EdgeMessage):
    """To an edge: push-to-talk was released; recognise what was said."""

    kind: Literal["listening_stopped"] = "listening_stopped"


class DetectedTextCommand(_EdgeMessage):
    """To an edge: the device says that it detected this: its wake word, or what its user typed."""

    kind: Literal["wake_word_heard"] = "wake_word_heard"
    text: str


class AbortAnswerCommand(_EdgeMessage):
    """To an edge: stop speaking at once and say so to the device, exactly once."""

    kind: Literal["speech_aborted"] = "speech_aborted"
    reason: str = ""


class DeviceReturnedCommand(_EdgeMessage):
    """To an edge: the device connected anew and may have missed the end of a speech."""

    kind: Literal["device_returned"] = "device_returned"


class TurnProgressCommand(_EdgeMessage):
    """To an edge: the turn goes on, though there is nothing to say yet; a tool is slow."""

    kind: Literal["turn_working"] = "turn_working"
    turn: str


class StartAnswerCommand(_EdgeMessage):
    """To an edge: an answer is being written; prepare the device for its audio."""

    kind: Literal["speech_begun"] = "speech_begun"
    turn: str
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""


class SpeakSentenceCommand(_EdgeMessage):
    """To an edge: speak this. `index` counts from 0 within the turn; a repeated one is skipped."""

    kind: Literal["sentence_ready"] = "sentence_ready"
    turn: str
    index: int
    text: str
    """Already cleaned for speech."""
    language: str = ""
    emotion: str = ""
    """The face of the answer, with its first sentence; one of the names in `fleet.core.text.emotion`."""


class EndAnswerCommand(_EdgeMessage):
    """To an edge: the turn is over; when the sentences were spoken, tell the device. `index`: how many there were."""

    kind: Literal["speech_ended"] = "speech_ended"
    turn: str
    index: int


EdgeCommand = Annotated[
    OpenSessionCommand
    | CloseSessionCommand
    | StartListeningCommand
    | StopListeningCommand
    | DetectedTextCommand
    | AbortAnswerCommand
    | DeviceReturnedCommand
    | TurnProgressCommand
    | StartAnswerCommand
    | SpeakSentenceCommand
    | EndAnswerCommand,
    Field(discriminator="kind"),
]


class UtteranceEvent(_EdgeMessage):
    """To a shard: the user said this; begin a turn. `turn` is the sender's name for it, unique for ever."""

    kind: Literal["utterance_heard"] = "utterance_heard"
    turn: str
    text: str
    language: str = ""
    """ISO 639-1 code of what was heard, empty when unknown."""
    typed: bool = False
    """Came as text through the api: for whatever session the device has or has not (`session` is empty)."""
    polite: bool = False
    """Is refused while the device's turn before is being answered; else it ends that turn."""
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""


class AnswerInterruptedEvent(_EdgeMessage):
    """To a shard: an answer was cut off, and the edge has already silenced it; or the user did not even wait for it."""

    kind: Literal["speech_interrupted"] = "speech_interrupted"
    turn: str
    spoken: int
    """How many sentences of the turn had begun to be heard."""


class AnswerDoneEvent(_EdgeMessage):
    """To a shard: the answer was spoken to its end."""

    kind: Literal["speech_done"] = "speech_done"
    turn: str


class SessionSilentEvent(_EdgeMessage):
    """To a shard: say goodbye.

    Nothing was heard for too long (`idle`), the audio path never opened (`unused`), a push-to-talk turn is over on
    firmware that needs a goodbye then (`pressed`), or the edge ends (`leaving`): then the user may have begun to speak,
    and is told that nobody will answer.
    """

    kind: Literal["session_silent"] = "session_silent"
    reason: Literal["idle", "unused", "pressed", "leaving"]


EdgeEvent = Annotated[
    UtteranceEvent | AnswerInterruptedEvent | AnswerDoneEvent | SessionSilentEvent,
    Field(discriminator="kind"),
]

EDGE_COMMANDS: TypeAdapter[EdgeCommand] = TypeAdapter(EdgeCommand)
EDGE_EVENTS: TypeAdapter[EdgeEvent] = TypeAdapter(EdgeEvent)
