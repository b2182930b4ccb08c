"""Text cut into the units that everything else matches on: English words, numbers, single Chinese characters."""

import re
import unicodedata
from dataclasses import dataclass

_UNIT = re.compile(
    r"(?P<number>(?<![\w.])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?)|(?P<word>[^\W\d_]+)|(?P<mark>[%,，.。;；:!！?？、])"
)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HALF_DAY = re.compile(r"\b([ap])\. ?m\b\.?", re.IGNORECASE)
_SEPARATORS = re.compile(r"['’]")
PAUSES = frozenset(",，.。;；!！?？、")


@dataclass(frozen=True, slots=True)
class Unit:
    """One word (lower case), number, Chinese character or punctuation mark; `start` and `end` lie in the plain text."""

    text: str
    start: int
    end: int
    han: bool = False


def plain(text: str) -> str:
    """Return the text with full-width letters, digits and apostrophes as simple ones; the case stays."""
    return _HALF_DAY.sub(r"\1m", _SEPARATORS.sub("'", unicodedata.normalize("NFKC", text))).strip()


def cut(text: str) -> tuple[Unit, ...]:
    """Cut plain text into units."""
    found: list[Unit] = []
    for match in _UNIT.finditer(text):
        if match.lastgroup == "word":
            found.extend(_words(match.group(), match.start()))
        else:
            found.append(Unit(match.group(), match.start(), match.end()))
    return tuple(found)


def texts(text: str) -> tuple[str, ...]:
    """Return only the texts of the units of any text, not yet plain."""
    return tuple(unit.text for unit in cut(plain(text)))


def spaced(name: str) -> str:
    """Return an identifier (`self.lamp.turn_on`, `turnOn`) as words."""
    return _CAMEL.sub(" ", re.sub(r"[_.\-/:]+", " ", name))


def has_han(text: str) -> bool:
    """Return whether the text holds a Chinese character."""
    return _HAN.search(text) is not None


def _words(run: str, offset: int) -> list[Unit]:
    pieces = re.finditer(rf"{_HAN.pattern}|[^\u3400-\u4dbf\u4e00-\u9fff]+", run)
    return [
        Unit(piece.group().lower(), offset + piece.start(), offset + piece.end(), has_han(piece.group()))
        for piece in pieces
    ]
