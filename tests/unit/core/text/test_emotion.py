"""emotion."""

import string

import pytest

from fleet.core.text.emotion import EMOTIONS, emotion_of


def test_there_are_the_21_names_of_the_contract() -> None:
    names = """neutral happy laughing funny sad angry crying loving embarrassed surprised shocked thinking winking cool
    relaxed delicious kissy confident sleepy silly confused"""
    assert list(EMOTIONS) == names.split()


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("🙂 Hello", "happy"),
        ("好的😭", "crying"),
        ("❤️", "loving"),
        ("🤷🏽‍♀️ well", "confused"),
        ("🚗 then 😡 and 😍", "angry"),
    ],
)
def test_first_known_emoji_decides(text: str, emotion: str) -> None:
    assert emotion_of(text) == emotion


@pytest.mark.parametrize("text", ["", "plain text :-)", "🚗", string.printable])
def test_text_without_a_known_emoji_has_no_emotion(text: str) -> None:
    assert emotion_of(text) is None


def test_every_name_has_an_emoji_of_its_own() -> None:
    firmware = "😶🙂😆😂😔😠😭😍😳😯😱🤔😉😎😌🤤😘😏😴😜🙄"
    assert [emotion_of(emoji) for emoji in firmware] == list(EMOTIONS)
