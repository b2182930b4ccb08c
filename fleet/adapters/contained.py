"""Models whose every failure is a `ProviderError` or `Overloaded`, as the ports promise: built-in ones and plugins."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from fleet.core.ports import USUAL, Asr, LlmAdapter, LlmEvent, LlmOptions, Message, ToolOffer, Transcript, Tts
from fleet.ground.tasks import provider_errors

T = TypeVar("T")


class ContainedAsr:
    """A recogniser."""

    def __init__(self, asr: Asr) -> None:
        self.inner = asr

    async def transcribe(self, pcm: bytes) -> Transcript:
        """See `fleet.core.ports.Asr`."""
        with provider_errors("asr"):
            heard = await self.inner.transcribe(pcm)
            # A plugin may return what no caller can use.
            return Transcript(heard.text + "", heard.language + "", heard.confidence)

    async def aclose(self) -> None:
        """See `fleet.core.ports.Asr`."""
        await self.inner.aclose()


class ContainedTts:
    """A voice."""

    def __init__(self, tts: Tts) -> None:
        self.inner = tts

    @property
    def sample_rate(self) -> int:
        """Of the audio that `speak` yields, in Hz."""
        return self.inner.sample_rate

    async def speak(self, text: str, language: str) -> AsyncGenerator[bytes, None]:
        """See `fleet.core.ports.Tts`."""
        with provider_errors("tts"):
            async with closing(self.inner.speak(text, language)) as pieces:
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


@asynccontextmanager
async def closing(pieces: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Close an iterator at the end of the block, if it can be closed."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
