import pytest

from fleet.core.text.completeness import TextVerdict, has_end, judge_text


@pytest.mark.parametrize(
    ("text", "language", "verdict"),
    [
        ("Turn on the light.", "en", "finished"),
        ("What time is it now?", "en", "finished"),
        ("Set the volume to", "en", "unfinished"),
        ("What are you looking for?", "en", "finished"),
        ("Stop the music, please.", "en", "finished"),
        ("Set the volume to...", "en", "unfinished"),
        ("Set the volume,", "en", "unfinished"),
        ("Set the volume.", "en", "unfinished"),
        ("Set the volume to 30%.", "en", "finished"),
        ("Set the volume to thirty percent.", "en", "finished"),
        ("What’s the", "en", "unfinished"),
        ("Let’s", "en", "unfinished"),
        ("Play some music and uh", "en", "unfinished"),
        ("Uh.", "en", "filler"),
        ("Um, you know...", "en", "filler"),
        ("Umbrella.", "en", "finished"),
        ("", "en", "empty"),
        (" ... ", "en", "empty"),
        ("打开客厅的灯。", "zh", "finished"),
        ("打开", "zh", "unfinished"),
        ("明天北京的", "zh", "unfinished"),
        ("把音量调到", "zh", "unfinished"),
        ("打开灯，", "zh", "unfinished"),
        ("把音量调到30%。", "zh", "finished"),
        ("明天早上7点。", "zh", "unfinished"),
        ("今天星期几。", "zh", "finished"),
        ("现在几。", "zh", "unfinished"),
        ("设置一个15。", "zh", "unfinished"),
        ("设置一个15分钟的定时器。", "zh", "finished"),
        ("嗯。", "zh", "filler"),
        ("嗯，那个……", "zh", "filler"),
        ("Mach das Licht", "de", "finished"),
        ("Mach das Licht,", "de", "unfinished"),
    ],
)
def test_text_is_judged_by_its_end(text: str, language: str, verdict: TextVerdict) -> None:
    assert judge_text(text, language) == verdict


@pytest.mark.parametrize(("text", "ended"), [("好。", True), ("Yes.”", True), ("到30%", True), ("打开", False)])
def test_a_mark_or_a_number_ends_a_text(text: str, ended: bool) -> None:
    assert has_end(text) is ended
