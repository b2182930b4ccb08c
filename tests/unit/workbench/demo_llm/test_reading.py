import pytest

from fleet.workbench.demo_llm.reading import read, sounds_of, stem


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("what is the volume", "query"),
        ("how loud are you", "query"),
        ("is the light on", "query"),
        ("what's the volume set to", "query"),
        ("音量是多少", "query"),
        ("灯开着吗", "query"),
        ("set the volume to 30", "command"),
        ("can you turn up the volume?", "command"),
        ("take a photo and tell me what is there", "command"),
        ("能不能把亮度调到80", "command"),
        ("请把音量调小一点可以吗", "command"),
        ("can you tell me the volume", "query"),
    ],
)
def test_questions_are_told_from_commands(text: str, mood: str) -> None:
    assert read(text).mood == mood


def test_the_language_is_that_of_the_script() -> None:
    assert read("set 音量 to 30").language == "zh"
    assert read("set the volume to 30").language == "en"


def test_set_gives_way_to_a_more_exact_verb() -> None:
    assert read("make it louder").actions == ("increase",)
    assert read("make it red").actions == ("set",)


def test_the_unknown_rest_is_kept_as_it_was_written() -> None:
    assert read("What is the weather in New London?").rest() == "New London"
    assert read("播放一首轻松的音乐").rest() == "轻松"
    assert read("turn up the volume").rest() == ""


def test_a_clause_borrows_the_verb_of_the_one_before() -> None:
    borrowed = read("the brightness").with_actions_of(read("turn up the volume"))
    assert borrowed.actions == ("increase",)
    assert borrowed.names("topic") == ("brightness",)
    kept = read("turn off the fan").with_actions_of(read("turn up the volume"))
    assert kept.actions == ("off",)


def test_unknown_words_are_compared_by_stem_and_by_sound() -> None:
    assert stem("rockets") == stem("rocket")
    assert sounds_of("回充") == sounds_of("回冲")
    assert sounds_of("坐下") & sounds_of("机器狗坐下")
