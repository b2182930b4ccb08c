"""The messages in the inboxes of edges and shards. Text only: audio never leaves an edge.

A shard's inbox belongs to the shard and outlives its owner; an edge's inbox belongs to the edge's process. Readers skip
unknown messages, so that two versions can run side by side during a rollout. The tags are the stored values of `kind`
and do not change. Why msgspec: docs/adr/0029-msgspec.md.
"""

from typing import Literal

from msgspec import Struct
from msgspec.json import Decoder

from fleet.wire.messages import ListenMode


class _EdgeMessage(Struct, frozen=True, kw_only=True, tag_field="kind"):
    device: str
    session: str

    @property
    def kind(self) -> str:
        """The stored name of the message's class."""
        return str(self.__struct_config__.tag)


class OpenSessionCommand(_EdgeMessage, frozen=True, tag="session_opened"):
    """To an edge: expect packets of this session; any other session of the device is over."""

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
    agent: str = ""
    """Digest of the device's agent (`fleet.wire.agents`); empty for the settings alone."""


class CloseSessionCommand(_EdgeMessage, frozen=True, tag="session_closed"):
    """To an edge: forget the session and stop its audio at once."""


class StartListeningCommand(_EdgeMessage, frozen=True, tag="listening_started"):
    """To an edge: the microphone is open."""

    mode: ListenMode


class StopListeningCommand(_EdgeMessage, frozen=True, tag="listening_stopped"):
    """To an edge: push-to-talk was released; recognise the utterance."""


class DetectedTextCommand(_EdgeMessage, frozen=True, tag="wake_word_heard"):
    """To an edge: the text of the device's `listen/detect`: its wake word, or typed text."""

    text: str


class AgentsChangedCommand(_EdgeMessage, frozen=True, tag="agents_changed"):
    """To an edge: read again which agents its sessions have; an empty device means all of them. It names no session."""


class AbortAnswerCommand(_EdgeMessage, frozen=True, tag="speech_aborted"):
    """To an edge: stop the answer at once and send the device one `tts stop`."""

    reason: str = ""


class DeviceReturnedCommand(_EdgeMessage, frozen=True, tag="device_returned"):
    """To an edge: the device has a new connection and may have missed the end of an answer."""


class TurnProgressCommand(_EdgeMessage, frozen=True, tag="turn_working"):
    """To an edge: the turn continues without text for now, for example during a slow tool call."""

    turn: str


class StartAnswerCommand(_EdgeMessage, frozen=True, tag="speech_begun"):
    """To an edge: an answer is being written; prepare the device for its audio."""

    turn: str
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""
    agent: str | None = None
    """Digest of the turn's agent, empty for the settings alone; None from the edge itself, and from an older worker."""


class SpeakSentenceCommand(_EdgeMessage, frozen=True, tag="sentence_ready"):
    """To an edge: speak this sentence. `index` counts from 0 within the turn; the edge skips a repeated one."""

    turn: str
    index: int
    text: str
    """Already cleaned for speech."""
    language: str = ""
    emotion: str = ""
    """The face of the answer, with its first sentence; one of the names in `fleet.core.text.emotion`."""
    agent: str | None = None
    """See `StartAnswerCommand.agent`."""


class PrepareSentenceCommand(_EdgeMessage, frozen=True, tag="sentence_prepared"):
    """To an edge: this will be the first sentence of a tentative turn, if it is committed; an older edge ignores it."""

    turn: str
    text: str
    language: str = ""
    agent: str | None = None
    """See `StartAnswerCommand.agent`."""


class MakeClipCommand(_EdgeMessage, frozen=True, tag="clip_asked"):
    """To an edge: synthesise a clip of an announcement. It names no device and no session; an older edge ignores it."""

    clip: str
    text: str
    language: str = ""
    agent: str = ""
    """Digest of the agent whose voice speaks."""
    tenant: int = 0
    """Whose operator announces it: tenants take turns, and reminders of users (0) with them."""


class EndAnswerCommand(_EdgeMessage, frozen=True, tag="speech_ended"):
    """To an edge: the turn is over; send `tts stop` after its sentences. `index` is the number of sentences."""

    turn: str
    index: int


EdgeCommand = (
    OpenSessionCommand
    | CloseSessionCommand
    | StartListeningCommand
    | StopListeningCommand
    | DetectedTextCommand
    | AgentsChangedCommand
    | AbortAnswerCommand
    | DeviceReturnedCommand
    | TurnProgressCommand
    | StartAnswerCommand
    | SpeakSentenceCommand
    | PrepareSentenceCommand
    | EndAnswerCommand
    | MakeClipCommand
)


class UtteranceEvent(_EdgeMessage, frozen=True, tag="utterance_heard"):
    """To a shard: an utterance; begin a turn. `turn` is its id, made by the sender and unique for ever."""

    turn: str
    text: str
    language: str = ""
    """ISO 639-1 code of the utterance, empty if unknown."""
    typed: bool = False
    """Text from the api: `session` is empty, and the turn runs in the device's session, if any."""
    heard: str = ""
    """The turn whose answer the user had heard to its end before speaking; empty for none, and if this was typed."""
    pause_ms: int = 0
    """From the end of that answer to the earliest begin of the utterance."""
    polite: bool = False
    """True: refused while another turn of the device runs. False: ends that turn."""
    speech_ms: int = 0
    """Length of the user's speech."""
    heard_ms: int = 0
    """From the last speech until its text was known."""
    traceparent: str = ""
    """The turn's trace (W3C Trace Context); empty while traces are off."""
    no_dangerous_tools: bool = False
    """Text of an operator who may not call dangerous tools: the model may not either. An older worker ignores it."""


class SayEvent(_EdgeMessage, frozen=True, tag="say_asked"):
    """To a shard: speak a text as it is, as a turn of this session. An older worker ignores it."""

    turn: str
    text: str
    language: str = ""
    polite: bool = False
    """As in `UtteranceEvent`."""
    reminder: bool = False
    """Whether the text is a reminder of the device's user, and not an operator's."""


class UtteranceTentativeEvent(_EdgeMessage, frozen=True, tag="utterance_tentative"):
    """To a shard: an utterance that may go on; prepare its answer, without an effect outside.

    An `UtteranceEvent` with the same turn follows when it is certain, otherwise an `UtteranceWithdrawnEvent`. An older
    worker ignores this message.
    """

    turn: str
    text: str
    language: str = ""


class UtteranceWithdrawnEvent(_EdgeMessage, frozen=True, tag="utterance_withdrawn"):
    """To a shard: the user went on; the turn is over, and a later one has its words, too. It may not have begun."""

    turn: str
    spoken: int | None = None
    """As in `AnswerInterruptedEvent`; None if an older edge sends it."""


class AnswerInterruptedEvent(_EdgeMessage, frozen=True, tag="speech_interrupted"):
    """To a shard: the answer was interrupted, and the edge has stopped it; it may not have begun yet."""

    turn: str
    spoken: int
    """How many sentences of the turn had begun to play."""
    first_audio_ms: int = 0
    spoken_ms: int = 0
    """As in `AnswerDoneEvent`."""


class AnswerDoneEvent(_EdgeMessage, frozen=True, tag="speech_done"):
    """To a shard: the answer was spoken to its end."""

    turn: str
    first_audio_ms: int = 0
    """From the user's last speech to the first packet; 0 if unknown."""
    spoken_ms: int = 0
    """Length of the answer's speech."""


class SessionSilentEvent(_EdgeMessage, frozen=True, tag="session_silent"):
    """To a shard: end the session with a goodbye.

    `idle`: silence for too long. `unused`: no audio ever arrived. `pressed`: a push-to-talk turn is over on firmware
    that then needs a goodbye. `leaving`: the edge stops; the user may have begun to speak, so an apology is due.
    """

    reason: Literal["idle", "unused", "pressed", "leaving"]


EdgeEvent = (
    UtteranceEvent
    | SayEvent
    | UtteranceTentativeEvent
    | UtteranceWithdrawnEvent
    | AnswerInterruptedEvent
    | AnswerDoneEvent
    | SessionSilentEvent
)

EDGE_COMMANDS: Decoder[EdgeCommand] = Decoder(EdgeCommand)
EDGE_EVENTS: Decoder[EdgeEvent] = Decoder(EdgeEvent)
