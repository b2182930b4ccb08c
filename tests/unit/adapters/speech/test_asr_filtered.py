import pytest

from fleet.adapters.contained import ContainedAsr
from fleet.adapters.speech.asr_filtered import FilteredAsr
from fleet.core.ports import Transcript
from fleet.ground.metrics import turns


class Recogniser:
    def __init__(self, text: str) -> None:
        self.text, self.closed = text, False

    async def transcribe(self, pcm: bytes) -> Transcript:
        return Transcript(self.text, "zh")

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("text", "reason"), [("谢谢观看", "phrase"), ("鸡鸡鸡鸡", "repetition")])
async def test_a_phantom_of_any_recogniser_is_dropped_and_counted(text: str, reason: str) -> None:
    before = turns.phantoms.read()[(reason,)]
    assert await FilteredAsr(Recogniser(text)).transcribe(b"") == Transcript("", "zh")
    assert turns.phantoms.read()[(reason,)] == before + 1


class Linguist(Recogniser):
    """A recogniser that is told about languages."""

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        return Transcript(self.text, f"{language} {expected}")


async def test_a_recogniser_is_told_of_languages_if_it_takes_them() -> None:
    assert (await FilteredAsr(ContainedAsr(Linguist("a"))).transcribe(b"", "zh", "en")).language == "zh en"
    assert (await FilteredAsr(ContainedAsr(Linguist("a"))).transcribe(b"", expected="en")).language == " en"
    assert (await FilteredAsr(ContainedAsr(Recogniser("a"))).transcribe(b"", "de", "en")).language == "zh"


async def test_speech_passes_unchanged_and_closing_closes_the_recogniser() -> None:
    inner = Recogniser("打开灯")
    asr = FilteredAsr(inner)
    assert await asr.transcribe(b"") == Transcript("打开灯", "zh")
    await asr.aclose()
    assert inner.closed
