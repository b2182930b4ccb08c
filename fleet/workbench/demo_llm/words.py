"""The dictionary of `words.toml`: concepts with their words in English and Chinese, and how Chinese sounds."""

import logging
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

log = logging.getLogger(__name__)

Language = Literal["en", "zh"]
HAN = "㐀-鿿"
_KINDS = ("topic", "generic", "place", "action", "value", "color", "mood", "filler")


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning: its kind, the words to say it with, and what `words.toml` says about actions and colours."""

    name: str
    kind: str
    en: str
    zh: str
    kin: frozenset[str]
    opposite: frozenset[str]
    clear: bool
    rgb: tuple[int, ...]


Meaning = tuple[tuple[str, ...], ...]
"""What a phrase means: all of these; each is one concept or several between which the phrase does not decide."""


class Dictionary:
    """The file, and what is derived from it. Phrases are in lower case with single spaces, the longest wins."""

    def __init__(self, file: Mapping[str, Any]) -> None:
        self.concepts = {name: _concept(name, kind, row) for kind in _KINDS for name, row in file[kind].items()}
        self.sentences, self.talk = file["sentence"], file["talk"]
        self.stop_words, self.stop_characters = frozenset(file["stop"]["en"].split()), file["stop"]["zh"]
        self.phrases = _phrases(file)
        self.long = _pattern(phrase for phrase in self.phrases if " " in phrase or re.match(f"[{HAN}]{{2}}", phrase))
        self.short = _pattern(self.phrases)
        spoken = {phrase: one for phrase, one in self.phrases.items() if self._kind(one) not in {"mood", "filler"}}
        long = {phrase: one for phrase, one in spoken.items() if re.fullmatch("[a-z]{6,}", phrase)}
        self.misspelt = [phrase for phrase, one in long.items() if self._kind(one) != "value"]
        han = {phrase: one for phrase, one in spoken.items() if re.fullmatch(f"[{HAN}]+", phrase)}
        self.by_sound = {tuple(map(sound, phrase)): one for phrase, one in han.items() if len(phrase) > 1}
        nouns = {phrase: one for phrase, one in han.items() if len(phrase) == 1 and self._kind(one) == "topic"}
        self.nouns_by_sound = {sound(phrase, loose=True): one for phrase, one in nouns.items()}

    def _kind(self, meaning: Meaning) -> str:
        return self.concepts[meaning[0][0]].kind


@cache
def dictionary() -> Dictionary:
    """Read the file once; the first call takes a quarter of a second."""
    file = resources.files("fleet.workbench.demo_llm").joinpath("words.toml").read_text(encoding="utf-8")
    return Dictionary(tomllib.loads(file))


def concept(name: str) -> Concept:
    return dictionary().concepts[name]


def label(name: str, language: Language) -> str:
    """Return a concept in words."""
    return concept(name).zh if language == "zh" else concept(name).en


def say(sentence: str, language: Language, *values: object) -> str:
    """Return a sentence of the file with its gaps filled."""
    return str(dictionary().sentences[sentence][language]).format(*values)


@cache
def sound(character: str, *, loose: bool = False) -> str:
    """Return how a Chinese character sounds, without its tone and the differences that recognition confuses.

    With `loose`, `ong` is taken for `eng` too: safe only where the sentence already asks for a noun.
    """
    plain = re.sub("ng$", "n", re.sub("^([zcs])h", r"\1", _reader()(character)))
    return re.sub("on$", "en", plain) if loose else plain


def split(row: str) -> list[str]:
    """Return the phrases of a row."""
    return [phrase for phrase in row.split("|") if phrase]


@cache
def _reader() -> Callable[[str], str]:
    try:
        from pypinyin import Style, pinyin
    except ImportError:
        log.warning("pypinyin is not installed: the demo model matches Chinese by characters only")
        return lambda character: character
    return lambda character: str(pinyin(character, style=Style.NORMAL)[0][0])


def _concept(name: str, kind: str, row: Mapping[str, Any]) -> Concept:
    chinese = row.get("label") or next(iter(split(row["zh"])), name)
    kin, opposite = (frozenset(row.get(key, "").split()) for key in ("kin", "opposite"))
    clear, rgb = row.get("clear", False), tuple(row.get("rgb", ()))
    english = name if kind == "action" else row["en"].split("|")[0]
    return Concept(name, kind, english, chinese, kin, opposite, clear, rgb)


def _phrases(file: Mapping[str, Any]) -> dict[str, Meaning]:
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for name, row in (item for kind in _KINDS for item in file[kind].items()):
        for phrase in split(f"{row['en']}|{row['zh']}"):
            names[phrase][name] = None
    found: dict[str, Meaning] = {phrase: (tuple(meant),) for phrase, meant in names.items()}
    for row in file["compound"]:
        found |= dict.fromkeys(split(f"{row['en']}|{row['zh']}"), tuple((name,) for name in row["means"]))
    return found


def _pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    ordered = map(re.escape, sorted(phrases, key=lambda phrase: -len(phrase)))
    return re.compile("|".join(rf"(?<![a-z]){phrase}(?![a-z])" if phrase.isascii() else phrase for phrase in ordered))
