import pytest

from fleet.workbench.demo_llm.lexicon import ALIKE, find_marks, label
from fleet.workbench.demo_llm.units import cut, plain


def found(text: str) -> list[tuple[str, ...]]:
    return [mark.names for mark in find_marks(cut(plain(text)))]


def test_the_longest_phrase_wins() -> None:
    assert found("dark mode") == [("dark_mode",)]
    assert found("空调") == [("air_conditioner",)]


def test_one_phrase_can_mean_several_things_at_once() -> None:
    assert found("louder") == [("volume",), ("increase",)]


def test_one_word_can_have_two_meanings() -> None:
    assert found("闹钟") == [("timer", "alarm")]


@pytest.mark.parametrize(
    ("text", "names"), [("凉度", ("brightness",)), ("握势", ("bedroom",)), ("brightnes", ("brightness",))]
)
def test_what_sounds_or_looks_alike_is_found_with_less_weight(text: str, names: tuple[str, ...]) -> None:
    (mark,) = find_marks(cut(text))
    assert (mark.names, mark.quality) == (names, ALIKE)


def test_a_single_character_is_guessed_only_where_a_noun_must_stand() -> None:
    assert found("打开客厅的动") == [("on",), ("living_room",), ("light",)]
    assert ("light",) not in found("动一动")


def test_words_that_make_sense_are_not_bent_into_others() -> None:
    assert found("把灯关了") == [("light",), ("off",)]


def test_a_preposition_is_no_switch() -> None:
    assert found("on the screen") == [("screen",)]
    assert found("turn the screen on") == [("screen",), ("on",)]


def test_numbers_are_never_taken_for_words_by_sound() -> None:
    assert ("humidity",) not in found("二十四度")


def test_concepts_have_words_in_both_languages() -> None:
    assert (label("living_room", "en"), label("living_room", "zh")) == ("living room", "客厅")
