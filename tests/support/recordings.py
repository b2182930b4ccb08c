"""The recorded commands of tests/data and what they say."""

import re
import wave
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
_ROW = re.compile(r"^\| (\d\d) \| (.+) \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Recording:
    path: Path
    language: str
    text: str

    def pcm(self) -> bytes:
        """Return 16 kHz s16le mono."""
        with wave.open(str(self.path)) as file:
            return file.readframes(file.getnframes())


def recordings(language: str) -> list[Recording]:
    rows = _ROW.findall((DATA / "README.md").read_text(encoding="utf-8"))
    found = [
        Recording(path, language, english if language == "en" else chinese)
        for number, english, chinese in rows
        for path in (DATA / "wav").glob(f"{language}_*_{number}.wav")
    ]
    assert len(found) == 10
    return found
