"""Cleaning a finished piece of an answer for speech."""

import re
import unicodedata

from fleet.core.text.markdown import strip_markdown

_HAN = r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"

_ENDS = re.compile(r"[!?！？]{2,}")
_DOTS = re.compile(r"\.{2,}|…{2,}|。{2,}")
_REPEATED = re.compile(r"([,，、;；:：\-—–~])\1+")
_EMPTY = re.compile(r"\(\s*\)|（\s*）|【\s*】|「\s*」|《\s*》|“\s*”|\"\s*\"")
_FIRST = re.compile(r"^[\s,，、;；:：。!！?？…)）\]】」』》”’]+")
_BEFORE_MARK = re.compile(r"\s+(?=[,，、;；:：。!！?？…)）\]】」』》”’]|\.(?!\w))")
_BETWEEN_HAN = re.compile(rf"(?<={_HAN})\s+(?={_HAN})")

_PLAIN = re.compile(
    "[A-Za-z]+(?:(?:,? |['’])[A-Za-z]+|,? [0-9]+)*[.!?]?|[\u4e00-\u9fff]+(?:[，、][\u4e00-\u9fff]+)*[。！？]?"
)
"""A sentence of words: most are, and nothing of them is changed."""
_LONGEST_PLAIN = 1_000

_SYMBOLS = {"So", "Sk", "Cs", "Co", "Cn", "Cc", "Cf", "Me"}
_KEPT = frozenset("℃℉°№^\u200c\u200d")
_SELECTORS = re.compile(r"[\ufe00-\ufe0f]|(?<![^\W\d_])[\u200c\u200d]+")
_ARROWS = re.compile(r"[\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f]")


def speakable(text: str) -> str:
    """Return the speakable part of a piece: no Markdown, emoji or decoration; empty when nothing remains.

    Links become their text, addresses their host. Numbers, units, %, ℃, formulas, names and the marks of Chinese and
    English stay. The time is proportional to the text's length for every content.
    """
    if len(text) <= _LONGEST_PLAIN and _PLAIN.fullmatch(text):
        return text
    return _clean(text)


def _clean(text: str) -> str:
    spoken = _pronounce(_strip_symbols(strip_markdown(text)))
    return spoken if any(char.isalnum() for char in spoken) else ""


def _strip_symbols(text: str) -> str:
    kept = "".join(char if _is_said(char) else " " for char in text)
    return _SELECTORS.sub("", _ARROWS.sub(" ", kept))


def _is_said(char: str) -> bool:
    return char in _KEPT or "\u3300" <= char <= "\u33ff" or unicodedata.category(char) not in _SYMBOLS


def _pronounce(text: str) -> str:
    text = _ENDS.sub(_one_end, text)
    text = _DOTS.sub(lambda found: "。" if found[0][0] == "。" else "…", text)
    text = _EMPTY.sub("", _REPEATED.sub(r"\1", text))
    text = _BETWEEN_HAN.sub("", _BEFORE_MARK.sub("", " ".join(text.split())))
    return _FIRST.sub("", text).strip()


def _one_end(found: re.Match[str]) -> str:
    marks = found[0]
    return next((mark for mark in marks if mark in "?？"), marks[0])
