"""Convert Chinese text to the phonemes of Kokoro's training: pinyin by phrase, then IPA in Kokoro's spelling."""

import re
from collections.abc import Callable
from functools import lru_cache

from fleet.adapters.speech.hanzi_numbers import spell_numbers
from fleet.adapters.speech.model_files import require

_RUN = re.compile(
    r"[㐀-䶿一-鿿〇]+|[A-Za-zÀ-ɏ]+(?:['’-][A-Za-zÀ-ɏ]+)*(?: +[A-Za-zÀ-ɏ]+(?:['’-][A-Za-zÀ-ɏ]+)*)*|.", re.DOTALL
)
_PUNCTUATION = str.maketrans("，、。．！？；：（）“”‘’《》〈〉「」『』【】…—～~", ',,..!?;:()""  """"""""()…—  ')
_SPELLING = (
    ("ʈʂ", "ꭧ"), ("tɕ", "ʨ"), ("ts", "ʦ"), ("˧˩˧", "↓"), ("˧˥", "↗"), ("˥˩", "↘"), ("˥", "→"),
    ("ɻ̩", "ɨ"), ("ɹ̩", "ɨ"), ("\N{COMBINING INVERTED BREVE BELOW}", ""),
)  # fmt: skip
_KEPT = ',.!?;:()"…—'


class MandarinReader:
    """Converts Chinese text, also with English words in it.

    Args:
        english: Returns the phonemes of English words.

    Raises:
        ConfigError: pypinyin or pinyin-to-ipa is not installed.
    """

    def __init__(self, english: Callable[[str], str]) -> None:
        self._english = english
        self._pypinyin = require("pypinyin")
        self._cut = require("pypinyin.contrib.mmseg").seg.cut
        self._to_ipa = require("pinyin_to_ipa").pinyin_to_ipa
        self._syllable = lru_cache(maxsize=2048)(self._spell_syllable)

    def phonemes(self, text: str) -> str:
        """Return the phonemes of a text, without characters that have no reading."""
        runs = _RUN.findall(spell_numbers(text))
        return re.sub(r"\s+", " ", "".join(self._read(run) for run in runs)).strip()

    def _read(self, run: str) -> str:
        if run[0].isalpha() and (run[0].isascii() or run[0] < "ɐ"):
            return f" {self._english(run)} "
        mark = run.translate(_PUNCTUATION)
        if len(run) == 1 and mark in _KEPT:
            return mark
        if not run[0].isalpha() and run != "〇":
            return " "
        # Kokoro was trained with spaces between words. Recognition of its speech gets 10 % of the characters wrong
        # without them, 6 % with them.
        return " ".join(self._read_word(word) for word in self._cut(run))

    def _read_word(self, word: str) -> str:
        style = self._pypinyin.Style.TONE3
        syllables = self._pypinyin.lazy_pinyin(word, style=style, neutral_tone_with_five=True, errors="ignore")
        return "".join(self._syllable(syllable) for syllable in syllables)

    def _spell_syllable(self, pinyin: str) -> str:
        try:
            ipa = "".join(self._to_ipa(pinyin)[0])
        except ValueError:
            return ""
        for phonetic, spelled in _SPELLING:
            ipa = ipa.replace(phonetic, spelled)
        return ipa
