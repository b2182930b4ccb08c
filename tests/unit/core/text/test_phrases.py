"""The language of what the server says of its own accord."""

import re
from typing import get_args

import pytest

from fleet.core.text.phrases import (
    LANGUAGES,
    PHRASES,
    PhotoPhrase,
    choose_language,
    language_of,
    phrase,
    written_language,
)


@pytest.mark.parametrize(
    ("setting", "choices", "reported", "language"),
    [
        ("auto", "en,zh", "zh-CN", "zh"),
        ("auto", "en, zh", "zh_TW", "zh"),
        ("auto", "en,zh", "EN-us", "en"),
        ("auto", "zh,en", "ja-JP", "zh"),
        ("auto", "zh,en", "", "zh"),
        ("auto", "en", "zh-CN", "en"),
        ("auto", "", "zh", "en"),
        ("de", "en,zh", "zh-CN", "de"),
        ("auto", "en,zh", "-" * 100, "en"),
    ],
)
def test_language(setting: str, choices: str, reported: str, language: str) -> None:
    assert choose_language(setting, choices, reported) == language


def test_a_text_that_is_no_locale_has_no_language() -> None:
    assert (language_of("zh_TW"), language_of("EN-us")) == ("zh", "en")
    assert [language_of(text) for text in ("../../en", "en\nx", "{}-en", "x" * 32)] == ["", "", "", ""]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Don't forget the 豆浆 in ten minutes", "en"),
        ("十秒后提醒我call Anna", "zh"),
        ("十秒后", "zh"),
        ("10:30", ""),
        ("ケーキを出して", ""),
        ("Напомни мне", ""),
        ("Küche", ""),
        ("", ""),
    ],
)
def test_most_of_a_text_tells_its_language(text: str, language: str) -> None:
    assert written_language(text) == language


def test_every_phrase_is_there_in_every_language() -> None:
    for name in PHRASES:
        assert len({phrase(name, language) for language in LANGUAGES}) == len(LANGUAGES)


def test_every_phrase_is_made_of_whole_sentences() -> None:
    for name in {*PHRASES, *get_args(PhotoPhrase)} - {"error"}:
        assert re.fullmatch(r"[A-Z][a-z ,;]+\.(?: [A-Z][a-z ,;]+\.)*", phrase(name, "en").replace(" I ", " i "))
        assert re.fullmatch(r"[\u4e00-\u9fff，]+。", phrase(name, "zh"))
