import pytest

from fleet.workbench.demo_llm.numbers import Number, find_numbers
from fleet.workbench.demo_llm.units import cut, plain


def numbers(text: str) -> tuple[Number, ...]:
    units = cut(plain(text))
    return find_numbers(units, [False] * len(units))


def values(text: str) -> list[tuple[float, str]]:
    return [(number.value, number.scale) for number in numbers(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("thirty", 30),
        ("fifty five", 55),
        ("fifty-five", 55),
        ("one hundred", 100),
        ("a hundred", 100),
        ("one hundred and five", 105),
        ("two thousand three hundred", 2300),
        ("zero", 0),
        ("three point five", 3.5),
        ("minus five", -5),
        ("-5", -5),
        ("22.5", 22.5),
        ("三十", 30),
        ("十", 10),
        ("十五", 15),
        ("二十六", 26),
        ("一百", 100),
        ("一百零五", 105),
        ("一百二", 120),
        ("两百五十", 250),
        ("三千", 3000),
        ("两万三千", 23000),
        ("三点五", 3.5),
        ("二零二五", 2025),
        ("负五", -5),
        ("3百", 300),
    ],
)
def test_numbers_are_read_in_digits_and_words(text: str, value: float) -> None:
    assert values(text) == [(value, "plain")]


@pytest.mark.parametrize(
    ("text", "value", "scale"),
    [
        ("30%", 30, "percent"),
        ("３０％", 30, "percent"),
        ("thirty percent", 30, "percent"),
        ("thirty per cent", 30, "percent"),
        ("百分之三十", 30, "percent"),
        ("百分之30", 30, "percent"),
        ("half", 0.5, "fraction"),
        ("一半", 0.5, "fraction"),
        ("a quarter", 0.25, "fraction"),
        ("四分之三", 0.75, "fraction"),
    ],
)
def test_shares_are_told_from_plain_numbers(text: str, value: float, scale: str) -> None:
    assert values(text) == [(value, scale)]


@pytest.mark.parametrize("text", ["一点", "一下", "来一首", "一个灯", "and", "hundred", "百", "a", ""])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert values(text) == []


def test_numbers_that_do_not_belong_together_stay_apart() -> None:
    assert values("seven thirty") == [(7, "plain"), (30, "plain")]
    assert values("音量30亮度五十") == [(30, "plain"), (50, "plain")]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("ten minutes", 10, "minute"),
        ("十分钟", 10, "minute"),
        ("half an hour", 0.5, "hour"),
        ("半小时", 0.5, "hour"),
        ("半个小时", 0.5, "hour"),
        ("三个小时", 3, "hour"),
        ("an hour", 1, "hour"),
        ("30 seconds", 30, "second"),
        ("三十秒", 30, "second"),
        ("百分之三十", 30, ""),
    ],
)
def test_durations_have_a_unit(text: str, value: float, unit: str) -> None:
    assert [(number.value, number.unit) for number in numbers(text)] == [(value, unit)]


def test_a_goal_is_told_from_an_amount() -> None:
    assert [number.towards for number in numbers("up to 30")] == [True]
    assert [number.towards for number in numbers("up by 30")] == [False]
    assert [number.towards for number in numbers("调到三十")] == [True]
    assert [number.towards for number in numbers("加三十")] == [False]
