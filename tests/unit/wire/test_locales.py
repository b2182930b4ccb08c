"""Nothing but a plain locale is taken for the language of a device."""

import pytest

from fleet.wire.locales import read_locale


@pytest.mark.parametrize("text", ["zh-CN", "en", "fil-PH", "zh_Hant_TW", "sr-Latn-RS", "es-419", " en-US "])
def test_a_locale_is_taken(text: str) -> None:
    assert read_locale(text) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        *("", "e", "english", "../../etc/passwd", "en\n-US", "en US", "en-", "en-U", "-CN", "en--US", "en;q=0.9"),
        *("<img src=x>", "{{7*7}}", "en-abcdefghi", "a-b-c-d-e", "zh-CN-x1-y2-z3", "ен", "e１-US", "x" * 32),
    ],
)
def test_another_text_is_not(text: str) -> None:
    assert read_locale(text) == ""
