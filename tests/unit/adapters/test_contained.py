"""Whatever an adapter or a plugin raises, its callers see what the port promises."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from fleet.adapters.contained import ContainedAsr, ContainedLlm, ContainedTts
from fleet.adapters.speech.asr_filtered import FilteredAsr
from fleet.core.ports import Message, TextDelta, Transcript
from fleet.ground.errors import ConfigError, Overloaded, ProviderError

FAULTS = [
    RuntimeError("x"),
    UnicodeEncodeError("ascii", "忙", 0, 1, "no ASCII"),
    ExceptionGroup("two", [OSError("a"), ValueError("b")]),
    TimeoutError(),
    StopAsyncIteration(),
    ConfigError("too late"),
]
KNOWN = [ProviderError("away", retryable=True), Overloaded("full")]


class Plugin:
    """Fails with `fault`, a stream after its first piece."""

    sample_rate = 24_000

    def __init__(self, fault: Exception | None) -> None:
        self.fault = fault
        self.heard: Any = Transcript("a", "en")
        self.closed = False

    async def transcribe(self, pcm: bytes) -> Transcript:
        if self.fault:
            raise self.fault
        return self.heard

    async def speak(self, text: str, language: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"pcm"
            if self.fault:
                raise self.fault
        finally:
            self.closed = True

    async def stream(self, *_: Any) -> AsyncGenerator[TextDelta, None]:
        async for _piece in self.speak("", ""):
            yield TextDelta("a")

    async def aclose(self) -> None:
        self.closed = True


async def transcribe(plugin: Plugin) -> object:
    return await ContainedAsr(plugin).transcribe(b"")


async def speak(plugin: Plugin) -> object:
    return [piece async for piece in ContainedTts(plugin).speak("a", "en")]


async def chat(plugin: Plugin) -> object:
    return [event async for event in ContainedLlm(plugin).stream([Message("user", "a")], [])]


ASKED = [transcribe, speak, chat]
Asked = Callable[[Plugin], Awaitable[object]]


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_a_crash_is_an_error_of_the_provider(ask: Asked, fault: Exception) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(Plugin(fault))
    assert (caught.value.retryable, caught.value.kind) == (False, "engine")


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("fault", KNOWN, ids=repr)
async def test_what_the_ports_promise_passes(ask: Asked, fault: Exception) -> None:
    with pytest.raises(type(fault)) as caught:
        await ask(Plugin(fault))
    assert caught.value is fault


async def test_results_pass() -> None:
    plugin = Plugin(None)
    assert [await ask(plugin) for ask in ASKED] == [Transcript("a", "en"), [b"pcm"], [TextDelta("a")]]
    assert ContainedTts(plugin).sample_rate == 24_000


@pytest.mark.parametrize("heard", [None, "text", Transcript(None, "en"), Transcript("a", None)])  # type: ignore[arg-type]
async def test_a_transcript_that_is_none_is_an_error(heard: object) -> None:
    plugin = Plugin(None)
    plugin.heard = heard
    with pytest.raises(ProviderError):
        await transcribe(plugin)


@pytest.mark.parametrize("room", [True, False])
def test_a_recogniser_tells_through_all_layers_whether_it_has_room(room: bool) -> None:
    class Queued(Plugin):
        has_room = room

    class Broken(Plugin):
        @property
        def has_room(self) -> bool:
            raise RuntimeError

    assert ContainedAsr(FilteredAsr(Queued(None))).has_room is room
    assert ContainedAsr(FilteredAsr(Plugin(None))).has_room
    assert not ContainedAsr(FilteredAsr(Broken(None))).has_room


async def test_closing_closes_the_stream_behind() -> None:
    plugin = Plugin(None)
    async with aclosing(ContainedTts(plugin).speak("a", "en")) as pieces:
        assert await anext(pieces) == b"pcm"
    assert plugin.closed
