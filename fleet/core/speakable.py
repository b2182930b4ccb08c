"""Cleaning a finished piece of an answer for speech.

A piece may be cut out of the middle of Markdown, so marks are removed wherever they stand, paired or not.
"""

import html
import re
import unicodedata

_URL = r"(?:https?://|www\.)[!-;=?-Z\\^-z|~]+"
_CJK = r"[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]"
_HAN = r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*(?:\)|\Z)|\[[^\[\]]*\])")
_LINK_END = re.compile(r"\]\([^()\s]*(?:\)|\Z)")
_FOOTNOTE = re.compile(r"\[\^[^\]]*\]:?")
_TASK = re.compile(r"^\s*(?:[-*+]\s+)?\[[ xX]\]\s*", re.MULTILINE)
_ADDRESS = re.compile(rf"<?({_URL})>?")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_ENDLESS = re.compile(r"&#[0-9]{8,};?")
_RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$|^[\s|:-]*\|[\s|:-]*$", re.MULTILINE)
_ROW = re.compile(r"^\s*\|(.+?)\|?\s*$", re.MULTILINE)
_LEAD = re.compile(r"^\s*(?:>\s?)*(?:#{2,6}\s*|#\s+|[-*+•●▪◦‣·]\s+)?", re.MULTILINE)
_TIMES = re.compile(r"(?<=\d)\s*\\?\*\s*(?=\d)")
_MARKS = re.compile(r"[*`\\|\[\]]|~{2,}|(?<![\w])_+|_+(?![\w])|(?<!\d)~|~(?!\d)|#(?!\w)(?<![\w]#)")
_ENDS = re.compile(r"[!?！？]{2,}")
_DOTS = re.compile(r"\.{2,}|…{2,}|。{2,}")
_REPEATED = re.compile(r"([,，、;；:：\-—–~])\1+")
_EMPTY = re.compile(r"\(\s*\)|（\s*）|【\s*】|「\s*」|《\s*》|“\s*”|\"\s*\"")
_FIRST = re.compile(r"^[\s,，、;；:：。!！?？…)）\]】」』》”’]+")
_BEFORE_MARK = re.compile(r"\s+(?=[,，、;；:：。!！?？…)）\]】」』》”’]|\.(?!\w))")
_BETWEEN_HAN = re.compile(rf"(?<={_HAN})\s+(?={_HAN})")

_SYMBOLS = {"So", "Sk", "Cs", "Co", "Cn", "Cc", "Cf", "Me"}
_KEPT = frozenset("℃℉°№\u200c\u200d")
_SELECTORS = re.compile(r"[\ufe00-\ufe0f]|(?<![^\W\d_])[\u200c\u200d]+")
_ARROWS = re.compile(r"[\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f]")


def speakable(text: str) -> str:
    """Return what of a piece should be said: no Markdown, emoji or decoration; empty when nothing is left to say.

    Links become their text, addresses their host. Numbers, units, %, ℃ and the marks of Chinese and English stay.
    """
    spoken = _pronounce(_strip_symbols(_strip_markdown(text)))
    return spoken if any(char.isalnum() for char in spoken) else ""


def _strip_markdown(text: str) -> str:
    text = _FOOTNOTE.sub("", _CODE.sub(" ", text))
    text = _LINK_END.sub("", _IMAGE_OR_LINK.sub(r"\1", text))
    text = _ADDRESS.sub(lambda found: _host(found[1]), text)
    text = html.unescape(_ENDLESS.sub("", _TAG.sub(" ", text)))
    text = _ROW.sub(lambda found: _cells(found[1]), _RULE.sub("", text))
    text = _LEAD.sub("", _TASK.sub("", text))
    text = _MARKS.sub("", _TIMES.sub(" × ", text))
    return text.replace("_", " ")


def _host(url: str) -> str:
    """Return an address as a person would say it, with the marks of the sentence that follow it."""
    address = url.rstrip(".,;:!?)'\"*_")
    host = address.partition("://")[2] or address
    return re.split(r"[/?#:]", host, maxsplit=1)[0].removeprefix("www.") + url[len(address) :]


def _cells(row: str) -> str:
    comma = "，" if re.search(_CJK, row) else ", "
    return comma.join(cell for part in row.split("|") if (cell := part.strip()))


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
