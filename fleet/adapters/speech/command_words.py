"""Prefer the words of commands in short Chinese utterances, among texts that sound alike.

Whisper writes 把音量掉到 for 把音量调到. Of its best texts this takes one that is likely and has words of commands. It
replaces their homophones before. The words are data (`tables/commands.txt`). Readings come from pypinyin's tables,
without tones, and with sounds as one that many speakers do not tell apart.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fleet.adapters.speech.model_files import require

LONGEST = 12
"""Characters of a text that is corrected; a longer one is no command, and its context has helped Whisper."""
MARGIN = 0.5
"""How much less likely than the best a text may be: difference of mean log probabilities of a token."""
BIAS = 0.5
"""What a text of nothing but words of commands is worth, on the same scale."""
_LEAST_NEAR = 4
"""Characters of a word in which one syllable may be only alike."""
_LEAST_KNOWN, _MOST_KNOWN = 3, 8
_MOST_READINGS = 2
"""Of a character, the most common first; the others are rare."""
_TABLE = Path(__file__).parent / "tables" / "commands.txt"
_HAN = re.compile(r"[一-鿿]+")
_FOLDED = (("zh", "z"), ("ch", "c"), ("sh", "s"), ("ang", "an"), ("eng", "en"), ("ing", "in"), ("diao", "tiao"))
_INITIAL = re.compile(r"[zcs]h|[^aeiou]?")


class CommandWords:
    """Words of commands by their sound.

    Raises:
        ConfigError: pypinyin is not installed.
    """

    def __init__(self) -> None:
        self._words = sorted(_TABLE.read_text(encoding="utf-8").split(), key=len, reverse=True)
        self._known: Mapping[str, object] = require("pypinyin.phrases_dict").phrases_dict

    def choose(self, heard: Sequence[tuple[str, float]]) -> str:
        """Return the text of an utterance.

        Args:
            heard: Texts, the most likely first, each with the mean log probability of its tokens.
        """
        best, most = heard[0]
        if _length(best) > LONGEST:
            return best
        ranked = ((*self._correct(text), score) for text, score in heard if score >= most - MARGIN)
        return max(ranked, key=lambda one: one[2] + BIAS * one[1])[0]

    def _correct(self, text: str) -> tuple[str, float]:
        """Return a text with words of commands in place of their homophones, and their share of it."""
        covered = 0

        def correct(run: re.Match[str]) -> str:
            nonlocal covered
            corrected, count = self._correct_run(run[0])
            covered += count
            return corrected

        corrected = _HAN.sub(correct, text)
        return corrected, covered / max(1, _length(text))

    def _correct_run(self, run: str) -> tuple[str, int]:
        """Return a text of Hanzi only with words of commands, and how many characters these have."""
        known = self._find_known(run)
        done = [False] * len(run)
        for word in self._words:
            for at in range(len(run) - len(word) + 1):
                end = at + len(word)
                if any(done[at:end]) or not (run.startswith(word, at) or self._sounds_like(run, at, word, known)):
                    continue
                run = run[:at] + word + run[end:]
                done[at:end] = [True] * len(word)
        return run, sum(done)

    def _find_known(self, run: str) -> list[bool]:
        """Return which characters belong to words of three characters or more, idioms for example."""
        known = [False] * len(run)
        for at in range(len(run)):
            for size in range(_LEAST_KNOWN, _MOST_KNOWN + 1):
                if run[at : at + size] in self._known:
                    known[at : at + size] = [True] * len(run[at : at + size])
        return known

    def _sounds_like(self, run: str, at: int, word: str, known: list[bool]) -> bool:
        heard = run[at : at + len(word)]
        if heard in self._known or any(known[at : at + len(word)]):
            return False
        different = [(a, b) for a, b in zip(heard, word, strict=True) if a != b and not _readings(a) & _readings(b)]
        if not different:
            return True
        last = at + len(word) == len(run)
        return len(word) >= _LEAST_NEAR and last and len(different) == 1 and _is_near(*different[0])


def _length(text: str) -> int:
    return sum(map(len, _HAN.findall(text)))


def _is_near(one: str, other: str) -> bool:
    """Return whether two characters have the same initial or the same final."""
    return any(
        left == right
        for a in _readings(one)
        for b in _readings(other)
        for left, right in zip(_halves(a), _halves(b), strict=True)
    )


def _halves(syllable: str) -> tuple[str, str]:
    initial = _INITIAL.match(syllable)
    size = initial.end() if initial else 0
    return syllable[:size] or "-", syllable[size:]


@cache
def _readings(character: str) -> frozenset[str]:
    """Return the readings of a character, without tones and folded."""
    readings = require("pypinyin.pinyin_dict").pinyin_dict.get(ord(character), "")
    return frozenset(_fold(reading) for reading in readings.split(",")[:_MOST_READINGS]) - {""}


def _fold(reading: str) -> str:
    plain = "".join(sign for sign in unicodedata.normalize("NFD", reading) if sign.isascii())
    for spelled, folded in _FOLDED:
        plain = plain.replace(spelled, folded)
    return plain
