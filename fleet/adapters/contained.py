"""Models whose every failure is a `ProviderError` or `Overloaded`, as the ports promise: built-in ones and plugins."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from fleet.core.ports import (
    USUAL,
    USUAL_VOICE,
    Asr,
    LlmAdapter,
    LlmEvent,
    LlmOptions,
    Message,
    ToolOffer,
    Transcript,
    Tts,
    TurnDetector,
    VoiceOptions,
)
from fleet.ground.errors import ProviderError
from fleet.ground.tasks import provider_errors

T = TypeVar("T")


class ContainedAsr:
    """A recogniser."""

    def __init__(self, asr: Asr) -> None:
        self.inner = asr
        self._options = options_of(asr.transcribe, "language", "expected")

    @property
    def has_room(self) -> bool:
        """See `has_room`; a plugin that cannot tell has none."""
        with suppress(ProviderError), provider_errors("asr"):
            return has_room(self.inner)
        return False

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        """See `fleet.core.ports.Asr`. A plugin that was written before languages could be told does as it is set."""
        with provider_errors("asr"):
            heard = await self.inner.transcribe(pcm, **self._options(language=language, expected=expected))
            # A plugin may return what no caller can use.
            return Transcript(heard.text + "", heard.language + "", heard.confidence)

    async def aclose(self) -> None:
        """See `fleet.core.ports.Asr`."""
        await self.inner.aclose()


class ContainedTts:
    """A voice."""

    def __init__(self, tts: Tts) -> None:
        self.inner = tts
        self._takes_voice = takes(tts.speak, "voice")

    @property
    def sample_rate(self) -> int:
        """Of the audio that `speak` yields, in Hz."""
        return self.inner.sample_rate

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        """See `fleet.core.ports.Tts`. A plugin that was written before voices could be chosen has only its own."""
        chosen = (voice,) if self._takes_voice else ()
        with provider_errors("tts"):
            async with closing(self.inner.speak(text, language, *chosen)) as pieces:
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        """See `fleet.core.ports.Tts`."""
        await self.inner.aclose()


class ContainedLlm:
    """A chat model."""

    def __init__(self, llm: LlmAdapter) -> None:
        self.inner = llm

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """See `fleet.core.ports.Llm`."""
        with provider_errors("llm"):
            async with closing(self.inner.stream(messages, tools, options)) as events:
                async for event in events:
                    yield event

    async def aclose(self) -> None:
        """See `fleet.core.ports.LlmAdapter`."""
        await self.inner.aclose()


def options_of(method: Callable[..., object], *names: str) -> Callable[..., dict[str, str]]:
    """Return what chooses of some named texts those that a method takes and that are not empty."""
    taken = [name for name in names if takes(method, name)]
    return lambda **texts: {name: texts[name] for name in taken if texts[name]}


def takes(method: Callable[..., object], name: str) -> bool:
    """Whether a method has an argument of this name: plugins were written for several versions of the ports."""
    try:
        return name in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


def has_room(model: Asr | TurnDetector) -> bool:
    """Whether a recogniser or turn detector can do work that may turn out to be useless.

    One with a bounded queue may have a property of this name: whether more than half of its places are free.
    """
    return bool(getattr(model, "has_room", True))


@asynccontextmanager
async def closing(pieces: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Close an iterator at the end of the block, if it can be closed."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
