"""How Chinese characters sound, without tones and with the differences folded that recognition often confuses."""

import logging
from collections.abc import Callable
from functools import cache

log = logging.getLogger(__name__)

_INITIALS = (("zh", "z"), ("ch", "c"), ("sh", "s"))
_FINALS = (("ing", "in"), ("eng", "en"), ("ang", "an"))
_LOOSE = (("ong", "en"),)

# The dictionary's further readings are mostly archaic and would make words alike that nobody confuses
_SECOND_READINGS = {"乐": "yue", "觉": "jiao", "调": "tiao", "重": "chong", "长": "chang", "还": "huan", "行": "hang"}


@cache
def sounds(character: str) -> frozenset[str]:
    """Return the folded readings of a character; the character itself when pypinyin is not installed."""
    return frozenset(_fold(reading) for reading in _reader()(character))


@cache
def loose_sounds(character: str) -> frozenset[str]:
    """Return the readings with `ong` folded to `eng` too; safe only where the sentence already asks for a noun."""
    return frozenset(_replace_end(sound, _LOOSE) for sound in sounds(character))


def sound_alike(one: str, other: str) -> bool:
    """Return whether two texts of equal length may be the same when heard."""
    return len(one) == len(other) and all(sounds(a) & sounds(b) for a, b in zip(one, other, strict=True))


def _fold(reading: str) -> str:
    for full, short in _INITIALS:
        if reading.startswith(full):
            reading = short + reading[len(full) :]
    return _replace_end(reading, _FINALS)


def _replace_end(reading: str, finals: tuple[tuple[str, str], ...]) -> str:
    for full, short in finals:
        if reading.endswith(full):
            return reading[: -len(full)] + short
    return reading


@cache
def _reader() -> Callable[[str], list[str]]:
    try:
        from pypinyin import Style, pinyin
    except ImportError:
        log.warning("pypinyin is not installed: the demo model matches Chinese by characters only")
        return lambda character: [character]
    return lambda character: [
        str(pinyin(character, style=Style.NORMAL)[0][0]),
        *_SECOND_READINGS.get(character, "").split(),
    ]
