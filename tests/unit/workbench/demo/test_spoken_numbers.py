import pytest

from fleet.workbench.demo.spoken_numbers import contains_number, contains_time, numbers_in


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The battery level is 62%.", [62]),
        ("sixty-two percent, not sixty", [62, 60]),
        ("Twenty thirty", [20, 30]),
        ("eleven oh seven", [11, 0, 7]),
        ("电量是百分之四十七。", [47]),
        ("十一点零七分", [11, 7]),
        ("二十，十，一百", [20, 10, 100]),
        ("nothing", []),
        ("", []),
    ],
)
def test_numbers_are_found_in_digits_and_words(text: str, numbers: list[int]) -> None:
    assert numbers_in(text) == numbers


def test_a_number_is_not_found_in_a_longer_one() -> None:
    assert contains_number("volume thirty", 30)
    assert not contains_number("volume 130", 30)
    assert not contains_number("thirty-one", 30)


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        ("It is 11:07 AM.", "It is 11.07 am."),
        ("It is 11:07 AM.", "It is 1107 AM."),
        ("It is 1:55 PM.", "It is one fifty-five pm"),
        ("It is 7:00 PM.", "It is 7pm."),
        ("现在是22点48分。", "现在是二十二点四十八分"),
        ("现在是22点48分。", "现在12.42.48分。"),
        ("现在是9点整。", "现在是九点整。"),
    ],
)
def test_a_time_is_recognised_however_it_is_written(reply: str, heard: str) -> None:
    assert contains_time(reply, heard)


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        ("It is 11:07 AM.", "It is 11:08 AM."),
        ("It is 11:07 AM.", ""),
        ("The volume is 30.", "The volume is 30."),
        ("I did not understand “what”.", "I did not understand."),
        ("It is 99:07.", "It is 99:07."),
        ("", ""),
    ],
)
def test_what_is_no_time_or_another_one_is_not_taken_for_it(reply: str, heard: str) -> None:
    assert not contains_time(reply, heard)


def test_the_hour_and_the_tens_of_the_minute_are_enough() -> None:
    assert contains_time("我看看，现在是12点41分。", "我看看,现在是12.40亿分。")
    assert not contains_time("我看看，现在是12点41分。", "我看看,现在是12.50分。")
    assert not contains_time("我看看，现在是12点41分。", "我看看,现在是13.40分。")
