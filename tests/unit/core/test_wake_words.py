"""What a text is that a device says it detected."""

import pytest

from fleet.core.wake_words import STOCK, WakeWords, judge
from tests.support.every import for_every

MAC, OTHER = "02:00:00:00:00:07", "02:00:00:00:00:08"


@for_every("text", [*STOCK, "hi esp", "ＨＩ，ＥＳＰ", "你好，小智！", " alexa "])
def test_stock_wake_words_are_known_however_they_are_written(text: str) -> None:
    assert WakeWords().knows(MAC, text)


def test_operators_and_devices_have_their_own() -> None:
    words = WakeWords(("Hello House", ""))
    assert words.knows(MAC, "hello, house")
    words.learn(MAC, "小胖")
    assert words.knows(MAC, "小胖")
    assert not words.knows(OTHER, "小胖")
    assert not words.knows(MAC, "小瘦")
    assert not words.knows(MAC, "")


def test_what_everybody_knows_takes_no_learnt_words_place() -> None:
    words = WakeWords()
    for text in ("小胖", "Hi,ESP", "?!"):
        words.learn(MAC, text)
    assert words.knows(MAC, "小胖")


def test_learnt_words_are_bounded() -> None:
    words = WakeWords(most=2)
    for number in range(3):
        words.learn(str(number), "小胖")
    assert [words.knows(str(number), "小胖") for number in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "state", "typed", "reason"),
    [
        ("你好小智", {"known": True, "listening": True}, False, "known wake word"),
        ("??", {"listening": True}, False, "no words"),
        ("小胖", {"burst": True}, False, "came with its audio"),
        ("小胖", {"burst": True, "listening": True}, False, "came with its audio"),
        ("几点了", {"listening": True}, True, "microphone open"),
        ("what's the time", {"listening": True}, True, "microphone open"),
        ("小胖", {}, None, "came without audio"),
        ("几点了", {"late": True}, True, "came without audio"),
        ("<detect>1 person detected </detect>", {"burst": True}, True, "no wake word is so long"),
        ("几点了？", {}, True, "no wake word is so long"),
        ('he said "hi"', {}, True, "no wake word is so long"),
        ("one\ntwo", {}, True, "no wake word is so long"),
        ("tell me a story about a dragon", {"burst": True}, True, "no wake word is so long"),
        ("x" * 24, {}, None, "came without audio"),
        ("x" * 25, {}, True, "no wake word is so long"),
    ],
)
def test_it_is_judged_by_word_state_audio_and_length(
    text: str, state: dict[str, bool], typed: bool | None, reason: str
) -> None:
    whole = {"known": False, "listening": False, "burst": False, "late": False} | state
    verdict = judge(text, **whole)
    assert (verdict.typed, verdict.reason) == (typed, reason)
