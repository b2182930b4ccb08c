"""What is said in the demo, and what the answers must hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]

_RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that the user says.

    The answer must contain `number`; without a number, it must contain a time of day. `tool` must be called by name.
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
    """A conversation in one language, and the device's volume and battery charge in percent when it begins."""

    language: Language
    title: str
    wake_word: str
    volume: int
    battery: int
    lines: Sequence[Line]


WANTED_VOLUME = 30
_SET_VOLUME = "self.audio_speaker.set_volume"
_STATUS = "self.get_device_status"


def _scene(language: Language, title: str, wake_word: str, numbers: tuple[int, int], texts: Sequence[str]) -> Scene:
    volume, battery = numbers
    time, louder, status = texts
    lines = (
        Line("time", language, time),
        Line("volume", language, louder, WANTED_VOLUME, _SET_VOLUME),
        Line("battery", language, status, battery, _STATUS),
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
"""The numbers differ from scene to scene, so that no answer can be that of another one."""
