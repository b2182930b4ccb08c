"""The fixed sentences that the server speaks or shows."""

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, get_args

from fleet.wire.locales import read_locale

Phrase = Literal[
    "failed",
    "not_understood",
    "not_heard",
    "too_long",
    "text_too_long",
    "refused",
    "unavailable",
    "interrupted",
    "error",
    "one_moment",
    "still_working",
]
HelloRefusal = Literal["refused", "unavailable"]
"""The phrases that refuse a hello."""
PHRASES: tuple[Phrase, ...] = get_args(Phrase)
PhotoPhrase = Literal["photo_failed", "photos_busy", "no_vision"]
"""Why a photo was not explained."""

ReminderPhrase = Literal["reminder", "reminder_late"]
"""What stands around a reminder, as a form with its text, and of a late one with its time."""

_PHRASES: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)

LANGUAGES = frozenset(_PHRASES["failed"])
"""Codes of the languages of the sentences."""

_HAN: Final = re.compile(r"[㐀-䶿一-鿿]")
_LATIN: Final = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_OTHER: Final = re.compile(r"(?![A-Za-z㐀-䶿一-鿿])[^\W\d_]")
"""Letters of other languages: kana, umlauts, Cyrillic."""


def phrase(name: Phrase | PhotoPhrase | ReminderPhrase, language: str) -> str:
    """Return a sentence in a language; English where it is not known."""
    known = _PHRASES[name]
    return known.get(language, known["en"])


def known_language(*wanted: str) -> str:
    """Return the first of some languages that has the sentences; English if none has."""
    return next((one for one in wanted if one in LANGUAGES), "en")


def written_language(text: str) -> str:
    """Return the language of a text that nobody named, if the sentences have it; empty if its script is of neither.

    What is more counts, Chinese characters or words in Latin letters: people name things in other languages.
    """
    chinese, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if _OTHER.search(text) or not (chinese or latin):
        return ""
    return "zh" if chinese >= latin else "en"


@lru_cache(maxsize=64)  # every session asks
def language_of(locale: str) -> str:
    """Return the language of a locale such as `zh-CN`; empty for a text that is no locale."""
    return re.split("[-_]", read_locale(locale).lower(), maxsplit=1)[0]


@lru_cache(maxsize=64)  # every session asks
def choose_language(setting: str, choices: str, reported: str) -> str:
    """Return the language of fixed sentences before the user has spoken.

    Args:
        setting: The language that people speak, or `auto`.
        choices: Languages that `auto` may choose from, separated by commas.
        reported: The language that the device sends, such as `zh-CN`; any text, also empty.
    """
    if setting != "auto":
        return setting
    known = [code for code in (part.strip() for part in choices.split(",")) if code]
    own = language_of(reported)
    return own if own in known else next(iter(known), "en")
