"""The messages in the inboxes of edges and shards. Text only: audio never leaves an edge.

A shard's inbox belongs to the shard and outlives its owner; an edge's inbox belongs to the edge's process. Readers skip
unknown messages, so that two versions can run side by side during a rollout. The values of `kind` are the stored form
and do not change.
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
    firmware: str = ""
    """Version, as the device reported it; this, its language and its board are empty if unknown."""
    reported_language: str = ""
    board: str = ""


class CloseSessionCommand(_EdgeMessage):
    """To an edge: forget the session and stop its audio at once."""

    kind: Literal["session_closed"] = "session_closed"


class StartListeningCommand(_EdgeMessage):
    """To an edge: the microphone is open."""

    kind: Literal["listening_started"] = "listening_started"
    mode: ListenMode


class StopListeningCommand(_EdgeMessage):
    """To an edge: push-to-talk was released; recognise the utterance."""

    kind: Literal["listening_stopped"] = "listening_stopped"


class DetectedTextCommand(_EdgeMessage):
    """To an edge: the text of the device's `listen/detect`: its wake word, or typed text."""

    kind: Literal["wake_word_heard"] = "wake_word_heard"
    text: str


class AbortAnswerCommand(_EdgeMessage):
    """To an edge: stop the answer at once and send the device one `tts stop`."""

    kind: Literal["speech_aborted"] = "speech_aborted"
    reason: str = ""


class DeviceReturnedCommand(_EdgeMessage):
    """To an edge: the device has a new connection and may have missed the end of an answer."""

    kind: Literal["device_returned"] = "device_returned"


class TurnProgressCommand(_EdgeMessage):
    """To an edge: the turn continues without text for now, for example during a slow tool call."""

    kind: Literal["turn_working"] = "turn_working"
    turn: str


class StartAnswerCommand(_EdgeMessage):
    """To an edge: an answer is being written; prepare the device for its audio."""

    kind: Literal["speech_begun"] = "speech_begun"
    turn: str
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""


class SpeakSentenceCommand(_EdgeMessage):
    """To an edge: speak this sentence. `index` counts from 0 within the turn; the edge skips a repeated one."""

    kind: Literal["sentence_ready"] = "sentence_ready"
    turn: str
    index: int
    text: str
    """Already cleaned for speech."""
    language: str = ""
    emotion: str = ""
    """The face of the answer, with its first sentence; one of the names in `fleet.core.text.emotion`."""


class EndAnswerCommand(_EdgeMessage):
    """To an edge: the turn is over; send `tts stop` after its sentences. `index` is the number of sentences."""

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
    """To a shard: an utterance; begin a turn. `turn` is its id, made by the sender and unique for ever."""

    kind: Literal["utterance_heard"] = "utterance_heard"
    turn: str
    text: str
    language: str = ""
    """ISO 639-1 code of the utterance, empty if unknown."""
    typed: bool = False
    """Text from the api: `session` is empty, and the turn runs in the device's session, if any."""
    polite: bool = False
    """True: refused while another turn of the device runs. False: ends that turn."""
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""


class AnswerInterruptedEvent(_EdgeMessage):
    """To a shard: the answer was interrupted, and the edge has stopped it; it may not have begun yet."""

    kind: Literal["speech_interrupted"] = "speech_interrupted"
    turn: str
    spoken: int
    """How many sentences of the turn had begun to play."""


class AnswerDoneEvent(_EdgeMessage):
    """To a shard: the answer was spoken to its end."""

    kind: Literal["speech_done"] = "speech_done"
    turn: str


class SessionSilentEvent(_EdgeMessage):
    """To a shard: end the session with a goodbye.

    `idle`: silence for too long. `unused`: no audio ever arrived. `pressed`: a push-to-talk turn is over on firmware
    that then needs a goodbye. `leaving`: the edge stops; the user may have begun to speak, so an apology is due.
    """

    kind: Literal["session_silent"] = "session_silent"
    reason: Literal["idle", "unused", "pressed", "leaving"]


EdgeEvent = Annotated[
    UtteranceEvent | AnswerInterruptedEvent | AnswerDoneEvent | SessionSilentEvent,
    Field(discriminator="kind"),
]

EDGE_COMMANDS: TypeAdapter[EdgeCommand] = TypeAdapter(EdgeCommand)
EDGE_EVENTS: TypeAdapter[EdgeEvent] = TypeAdapter(EdgeEvent)
