"""The ports to models: what built-in adapters and plugins implement (docs/howto/write-a-plugin.md).

Audio is 16-bit little-endian mono PCM everywhere.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ASR_RATE = 16_000
"""Sample rate in Hz of the audio given to `Asr`."""


UNDECIDED = 0.5
"""What a `TurnDetector` returns that cannot tell."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recognised utterance; an empty text means that no speech was understood."""

    text: str
    language: str = ""
    """ISO 639-1 code, empty when unknown."""
    confidence: float | None = field(default=None, compare=False)
    """Mean probability of its words, 0 to 1: that of words cut in their middle is low. None if unknown."""


class Asr(Protocol):
    """Turns one utterance into text."""

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        """Return what was said.

        Args:
            pcm: The utterance at 16 kHz.
            language: ISO 639-1 code of the language that is spoken; empty to do as the settings say.
            expected: The language that is probably spoken: that of the utterance before. It may only save work.

        Raises:
            ProviderError: The engine or endpoint failed, or its limit in time passed.
            Overloaded: Its bounded queue is full.
        """

    async def aclose(self) -> None:
        """Let go of connections and threads."""


class TurnDetector(Protocol):
    """Judges from the sound of a pause whether the speaker has finished."""

    async def finished(self, pcm: bytes) -> float:
        """Return the probability that the speaker has finished, 0 to 1; `UNDECIDED` if it cannot tell.

        Args:
            pcm: The utterance until the pause at 16 kHz.

        Raises:
            ProviderError: The engine failed, or its limit in time passed.
            Overloaded: Its bounded queue is full.
        """

    async def aclose(self) -> None:
        """Let go of connections and threads."""


@dataclass(frozen=True, slots=True)
class VoiceOptions:
    """Which voice speaks, and how."""

    name: str = ""
    """At its provider; empty for that of the settings. One that the provider does not have is its usual one."""
    speed: float = 1.0
    """0.5 to 2; 1 is the usual speed."""


USUAL_VOICE = VoiceOptions()
"""The voice of the settings."""


class Tts(Protocol):
    """Turns one sentence into audio."""

    @property
    def sample_rate(self) -> int:
        """Of the audio that `speak` yields, in Hz."""

    def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        """Yield the audio of a sentence in pieces of any length (whole samples), as soon as each is ready.

        Closing the iterator ends the work behind it.

        Args:
            text: Cleaned for speech: no Markdown, no emoji.
            language: ISO 639-1 code, or empty to find it from the text.
            voice: Of this sentence. Sentences of several voices are spoken side by side.

        Raises:
            ProviderError: The engine or endpoint failed, or its limit in time passed.
            Overloaded: Its bounded queue is full.
        """

    async def aclose(self) -> None:
        """Let go of connections and threads."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for; `arguments` is JSON text as the model wrote it, perhaps invalid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, as chat models know it.

    `calls` only with role `assistant`, `call_id` only with role `tool`.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool in the form offered to the model: `name` matches `[a-zA-Z0-9_-]{1,64}`."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """Options of one request; None leaves a choice to the model's adapter."""

    temperature: float | None = None
    max_tokens: int | None = None
    may_call: bool = True
    """False: the request lists the tools, since the conversation holds calls of them, but the model must write text."""


USUAL = LlmOptions()
"""Nothing chosen."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """A piece of a reasoning model's thoughts: neither spoken nor kept."""

    text: str


@dataclass(frozen=True, slots=True)
class CallsAsked:
    """The model ends its message by asking for these calls; comes at most once, last."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one request, or of several; `cached` are those of `input` for which earlier work was reused."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(self.input + other.input, self.cached + other.cached, self.output + other.output)

    def named(self) -> dict[str, int]:
        """Return the counts by their names in logs and traces."""
        return {"input_tokens": self.input, "cached_tokens": self.cached, "output_tokens": self.output}


@dataclass(frozen=True, slots=True)
class TokensUsed:
    """What the endpoint counted; comes at most once, after the text. An adapter need not know it."""

    usage: TokenUsage


LlmEvent = TextDelta | ThoughtDelta | CallsAsked | TokensUsed


class Llm(Protocol):
    """Streams a chat model's next message."""

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message. Closing the iterator closes the request behind it.

        Raises:
            ProviderError: The endpoint refused, failed, broke off or was silent for too long.
        """


class LlmAdapter(Llm, Protocol):
    """A chat model that holds connections of its own."""

    async def aclose(self) -> None:
        """Let go of connections and threads."""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """The operator's settings for a provider of one kind: `ASR_*`, `TTS_*` or `LLM_*`.

    A field is None if the kind has no such setting or the operator has not set it.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    voice: str | None = None
    language: str | None = None
    sample_rate: int | None = None
    """In Hz."""
    temperature: float | None = None
    max_tokens: int | None = None
    seconds: float = 5.0
    """Longest wait: for a transcript, for each piece of audio or text, for a tool's result."""


AsrFactory = Callable[[ProviderOptions], Asr]
"""What an entry point of `fleet.asr` names. Called once, in a thread, so it may load a model; raises `ConfigError`."""
TtsFactory = Callable[[ProviderOptions], Tts]
"""What an entry point of `fleet.tts` names; called as an `AsrFactory` is."""
LlmFactory = Callable[[ProviderOptions], LlmAdapter]
"""What an entry point of `fleet.llm` names. Called on the event loop, so it must not block; raises `ConfigError`."""
