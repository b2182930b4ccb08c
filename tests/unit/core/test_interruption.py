from typing import get_args

import pytest

from fleet.core.interruption import (
    DECIDE_SECONDS,
    FIRST_TEXT_SECONDS,
    INTERRUPTING,
    MOST_TEXTS,
    QUIET_SECONDS,
    SHORT_MS,
    HeldAnswer,
    OverlapRules,
    Sensitivity,
    Verdict,
)
from fleet.ground.metrics.turns import interruptions

SAID = (
    "The weather in Paris is sunny.",
    "Tomorrow there will be rain, so please wait and stop at home.",
    "明天北京多云转晴。",
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", "noise"),
        ("...", "noise"),
        ("Mm-hmm.", "backchannel"),
        ("Mmmmm", "backchannel"),
        ("Uh-huh, okay. Yeah.", "backchannel"),
        ("OKAY!", "backchannel"),
        ("嗯嗯。", "backchannel"),
        ("好的，对对对", "backchannel"),
        ("嗯，对，uh huh", "backchannel"),
        ("Stop.", "keyword"),
        ("Okay, stop!", "keyword"),
        ("wait", "keyword"),
        ("等等，我还有一个问题", "keyword"),
        ("停", "keyword"),
        ("Okay, and what about Rome?", "words"),
        ("嗯，那明天呢", "words"),
        ("Paris", "words"),
        ("in Paris", "words"),
        ("weather in Paris is", "echo"),
        ("so please wait and stop at home", "echo"),
        ("the weather in London is sunny", "words"),
        ("北京多云转晴", "echo"),
        ("北京", "words"),
        ("门", "few_words"),
        ("Mom. Mom.", "backchannel"),
        ("3.", "few_words"),
        ("No", "words"),
    ],
)
def test_text_over_an_answer_is_judged(text: str, verdict: Verdict) -> None:
    assert OverlapRules("normal").judge(text, SAID, 900.0) == verdict


def test_begin_of_an_echo_is_no_interruption_while_the_voice_goes_on() -> None:
    rules = OverlapRules("normal")
    assert rules.judge("Tomorrow there", SAID, 700.0, ended=False) == "echo"
    assert rules.judge("Tomorrow there", SAID, 700.0) == "words"
    assert rules.judge("please wait", SAID, 700.0, ended=False) == "echo"
    assert rules.judge("Stop", SAID, 700.0, ended=False) == "keyword"


def test_no_text_is_the_echo_of_an_answer_that_said_something_else() -> None:
    assert OverlapRules("normal").judge("The weather in Paris is sunny", (), 900.0) == "words"


def test_low_sensitivity_needs_a_keyword_or_three_words_or_four_characters() -> None:
    rules = OverlapRules("low")
    verdicts = {
        text: rules.judge(text, (), 900.0) for text in ("stop", "what time", "what time is it", "几点", "现在几点")
    }
    assert list(verdicts.values()) == ["keyword", "few_words", "words", "few_words", "words"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Paris", "few_words"),
        ("退退", "few_words"),
        ("Stop", "keyword"),
        ("关灯", "words"),
        ("Next one", "words"),
        ("No", "words"),
        ("听。", "words"),
    ],
)
def test_short_sound_needs_a_keyword_or_the_begin_of_a_command(text: str, verdict: Verdict) -> None:
    assert OverlapRules("normal").judge(text, (), SHORT_MS - 1) == verdict
    assert OverlapRules("normal").judge(text, (), SHORT_MS) == ("keyword" if verdict == "keyword" else "words")


def test_operator_adds_keywords() -> None:
    assert OverlapRules("normal", ("basta", " Silencio por favor ", "")).judge("¡Basta!", (), 900.0) == "keyword"
    assert OverlapRules("low", ("basta",)).judge("basta", (), 900.0) == "keyword"
    assert OverlapRules("low").judge("basta", (), 900.0) == "few_words"


def test_every_verdict_is_a_label_of_the_metric() -> None:
    assert interruptions.labels["verdict"] == get_args(Verdict)


def held(sensitivity: Sensitivity = "normal") -> HeldAnswer:
    return HeldAnswer(OverlapRules(sensitivity), 10.0, 10.0)


def test_voice_that_has_ended_is_recognised_at_once_and_one_that_goes_on_after_a_while() -> None:
    short = held()
    assert not short.wants_text(10.0 + QUIET_SECONDS - 0.01)
    assert short.wants_text(10.0 + QUIET_SECONDS)
    long = held()
    long.voice_at = 10.0 + FIRST_TEXT_SECONDS - 0.01
    assert not long.wants_text(long.voice_at)
    assert long.wants_text(10.0 + FIRST_TEXT_SECONDS)


def test_audio_is_recognised_again_only_if_there_is_new_voice_and_not_without_end() -> None:
    answer = held()
    answer.note_text("noise", 10.2)
    assert not answer.wants_text(10.5)
    answer.voice_at = 10.4
    assert answer.wants_text(10.56)
    answer.texts = MOST_TEXTS
    assert not answer.wants_text(10.56)


@pytest.mark.parametrize("verdict", ["words", "keyword"])
def test_words_interrupt_while_the_voice_goes_on(verdict: Verdict) -> None:
    answer = held()
    answer.voice_at = 10.6
    answer.note_text(verdict, 10.5)
    assert answer.decide(10.61) == verdict


def test_backchannel_lets_the_answer_go_on_when_its_voice_has_ended() -> None:
    answer = held()
    answer.note_text("backchannel", 10.2)
    answer.voice_at = 10.3
    assert answer.decide(10.5) is None, "there was voice after the text"
    answer.note_text("backchannel", 10.5)
    assert answer.decide(10.5) == "backchannel"


@pytest.mark.parametrize(
    ("verdict", "voice_at", "sensitivity", "decided"),
    [
        ("noise", 10.9, "normal", "noise"),
        ("echo", 10.9, "normal", "echo"),
        ("few_words", 10.9, "normal", "voice"),
        ("few_words", 10.9, "low", "few_words"),
        (None, 10.9, "normal", "voice"),
        (None, 10.9, "low", "undecided"),
        (None, 10.3, "normal", "undecided"),
    ],
)
def test_hold_is_bounded(verdict: Verdict | None, voice_at: float, sensitivity: Sensitivity, decided: Verdict) -> None:
    answer = held(sensitivity)
    answer.voice_at = voice_at
    if verdict:
        answer.note_text(verdict, 10.6)
    assert answer.decide(10.0 + DECIDE_SECONDS - 0.01) is None
    assert answer.decide(10.0 + DECIDE_SECONDS) == decided
    assert (decided in INTERRUPTING) == (decided == "voice")
