from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.consent import SECONDS, Answer, Ask, confirms, describe_call, judge, write_question
from fleet.core.ports import ToolCall
from tests.support.every import for_every

WHAT = "restart the device"
ASK = Ask("t1", "s1", "self.reboot", ToolCall("c1", "reboot", "{}"), WHAT)

_ANSWERS: list[tuple[str, Answer]] = [
    ("Yes.", "yes"),
    ("yes please", "yes"),
    ("Um, yes!", "yes"),
    ("Yes, restart the device now, please.", "yes"),
    ("Sure, go ahead.", "yes"),
    ("Yeah yeah yeah.", "yes"),
    ("是的", "yes"),
    ("嗯，好的，谢谢。", "yes"),
    ("确认。", "yes"),
    ("没错", "yes"),
    ("那就好吧", "yes"),
    ("No.", "no"),
    ("Yes, but no.", "no"),
    ("yes no", "no"),
    ("Yes but not now.", "no"),
    ("Don't do it.", "no"),
    ("Please don't restart.", "no"),
    ("yes or no", "no"),
    ("Should I really do this: restart the device? Please say yes or no.", "no"),
    ("OK, cancel.", "no"),
    ("Yes, if you must", "no"),
    ("是，但是不要", "no"),
    ("不是", "no"),
    ("是不是", "no"),
    ("不好", "no"),
    ("不对", "no"),
    ("没有", "no"),
    ("好吗", "no"),
    ("请说确认，或者说不。", "no"),
    ("取消", "no"),
    ("restart the device", "other"),
    ("um", "other"),
    ("嗯", "other"),
    ("mhm", "other"),
    ("", "other"),
    ("What is the weather?", "other"),
    ("Yes, and what is the weather?", "other"),
    ("yes sir, play music", "other"),
    ("今天天气怎么样", "other"),
    ("是谁", "other"),
    ("对话模式", "other"),
    ("Yesterday.", "other"),
    ("yes " * 30, "other"),
]


@for_every("text, answer", _ANSWERS)
def test_only_an_answer_that_is_a_yes_and_nothing_else_is_a_yes(text: str, answer: Answer) -> None:
    assert judge(text, WHAT) == answer


@given(st.text("yes oknd是好不别,. ", max_size=40), st.sampled_from(["no", "don't", "不", "but", "别"]))
def test_with_a_negation_nothing_is_a_yes(text: str, negation: str) -> None:
    assert judge(f"{text} {negation}") != "yes"
    assert judge(f"{negation} {text}") != "yes"


def test_a_negation_in_the_name_of_a_tool_makes_no_yes_of_a_no() -> None:
    assert judge("yes stop", describe_call("self.music.stop", {}, "en")) == "no"


def test_the_next_utterance_of_the_session_after_the_question_confirms() -> None:
    assert confirms(ASK, "s1", "yes", "t1", 0.0)
    assert confirms(ASK, "s1", "yes", "t1", SECONDS)


@for_every(
    "session, text, heard, pause",
    [
        ("s2", "yes", "t1", 1.0),
        ("", "yes", "t1", 1.0),
        ("s1", "yes", "t0", 1.0),
        ("s1", "yes", "", 1.0),
        ("s1", "yes", "t1", SECONDS + 0.1),
        ("s1", "yes", "t1", -0.1),
        ("s1", "no", "t1", 1.0),
        ("s1", "what time is it", "t1", 1.0),
    ],
)
def test_nothing_else_does(session: str, text: str, heard: str, pause: float) -> None:
    assert not confirms(ASK, session, text, heard, pause)
    assert not confirms(replace(ASK, turn=""), session, text, "", pause)


def test_a_confirmed_call_has_an_id_of_its_own_which_never_changes() -> None:
    assert ASK.confirmed == replace(ASK.call, id=ASK.confirmed.id)
    assert ASK.confirmed.id not in (ASK.call.id, replace(ASK, turn="t2").confirmed.id)


@pytest.mark.parametrize("language", ["en", "zh", "xx"])
def test_the_question_says_what_is_done(language: str) -> None:
    what = describe_call("self.audio_speaker.set_volume", {"volume": 30}, language)
    assert what in write_question(what, language)
    assert "30" in what


def test_of_arguments_only_short_words_are_said() -> None:
    arguments = {"url": "http://x", "which": "front", "a": "say yes: " * 9, "b" * 99: 1, "n": 10**99, "on": True}
    said = describe_call("self.door.open_it", arguments, "en")
    assert said == "door open it, which front, on true"
