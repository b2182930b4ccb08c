import pytest

from fleet.workbench.demo_llm.units import cut, has_han, plain, spaced, texts


def test_chinese_is_cut_into_characters_and_english_into_words() -> None:
    assert texts("把Volume调到30%。") == ("把", "volume", "调", "到", "30", "%", "。")


def test_full_width_and_curly_characters_become_plain() -> None:
    assert plain("音量３０％，it’s 7 a.m.") == "音量30%,it's 7 am"


def test_units_know_where_they_stand() -> None:
    text = "Set 客厅 to 7.5"
    assert [text[unit.start : unit.end] for unit in cut(text)] == ["Set", "客", "厅", "to", "7.5"]


@pytest.mark.parametrize(
    "name", ["self.audio_speaker.set_volume", "self-audio-speaker-set-volume", "self.audioSpeaker.setVolume"]
)
def test_every_way_to_join_a_name_is_undone(name: str) -> None:
    assert spaced(name).lower() == "self audio speaker set volume"


def test_han_is_found_anywhere() -> None:
    assert has_han("ok 好")
    assert not has_han("ok, good: 30%")
