"""The script of the demo: what the user says, and what the answers must contain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]

_RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One sentence of the user.

    Args:
        name: Of the recording.
        language: Of the sentence.
        text: The sentence.
        number: Number that the answer must contain; None: the answer must contain a time of day.
        tool: Name of the tool that must be called; empty: none.
    """

    name: str
    language: Language
    text: str
    number: int | None = None
    tool: str = ""

    @property
    def recording(self) -> Path:
        return _RECORDINGS / f"{self.language}_{self.name}.wav"


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation in one language; volume and battery charge of the device at its begin are in percent."""

    language: Language
    title: str
    wake_word: str
    volume: int
    battery: int
    lines: Sequence[ScriptLine]


WANTED_VOLUME = 30
_SET_VOLUME = "self.audio_speaker.set_volume"
_STATUS = "self.get_device_status"


def _scene(language: Language, title: str, wake_word: str, numbers: tuple[int, int], texts: Sequence[str]) -> Scene:
    volume, battery = numbers
    time, set_volume, status = texts
    lines = (
        ScriptLine("time", language, time),
        ScriptLine("volume", language, set_volume, WANTED_VOLUME, _SET_VOLUME),
        ScriptLine("battery", language, status, battery, _STATUS),
    )
    return Scene(language, title, wake_word, volume, battery, lines)


SCENES: dict[Language, Scene] = {
    "en": _scene(
        "en",
        "English",
        "hi fleet",
        (70, 62),
        ("what time is it now", "set the volume to thirty percent", "what is the battery level"),
    ),
    "zh": _scene("zh", "中文", "你好小智", (80, 65), ("现在几点了", "把音量调到百分之三十", "现在电量是多少")),
}
"""The numbers of the scenes differ, so that the answer of one scene is wrong in the other."""
