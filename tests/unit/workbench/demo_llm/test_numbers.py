import pytest

from fleet.workbench.demo_llm.numbers import find_numbers, find_time

PLAIN = """\
thirty 30
fifty five 55
one hundred 100
a hundred 100
one hundred and five 105
zero 0
three point five 3.5
minus five -5
-5 -5
22.5 22.5
三十 30
十 10
十五 15
二十六 26
一百 100
一百零五 105
一百二 120
两百五十 250
三千 3000
三点五 3.5
二零二五 2025
负五 -5
""".splitlines()
SHARES = """\
30% 0.3
thirty percent 0.3
thirty per cent 0.3
百分之三十 0.3
百分之30 0.3
half 0.5
一半 0.5
a quarter 0.25
四分之三 0.75
""".splitlines()
DURATIONS = """\
ten minutes 10 minute
十分钟 10 minute
half an hour 0.5 hour
半小时 0.5 hour
半个小时 0.5 hour
三个小时 3 hour
an hour 1 hour
30 seconds 30 second
三十秒 30 second
""".splitlines()


@pytest.mark.parametrize("row", [*PLAIN, *SHARES])
def test_numbers_are_read_in_digits_and_words(row: str) -> None:
    text, value = row.rsplit(" ", 1)
    assert [(number.value, number.share) for number in find_numbers(text)] == [(float(value), row in SHARES)]


@pytest.mark.parametrize("row", DURATIONS)
def test_durations_have_a_unit(row: str) -> None:
    text, value, unit = row.rsplit(" ", 2)
    assert [(number.value, number.unit) for number in find_numbers(text)] == [(float(value), unit)]


@pytest.mark.parametrize("text", ["一点", "一下", "来一首", "一个灯", "and", "hundred", "百", "a", ""])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert not list(find_numbers(text))


def test_numbers_that_do_not_belong_together_stay_apart() -> None:
    assert [number.value for number in find_numbers("seven thirty")] == [7, 30]
    assert [number.value for number in find_numbers("音量30亮度五十")] == [30, 50]


def test_a_goal_is_told_from_an_amount() -> None:
    texts = ("up to 30", "up by 30", "调到三十", "加三十")
    assert [number.towards for text in texts for number in find_numbers(text)] == [True, False, True, False]


TIMES = """\
wake me up at seven thirty tomorrow morning 7 30
7:30 7 30
at 7 pm 19 0
six o clock 6 0
half past seven 7 30
quarter to eight 7 45
明天早上七点半叫我起床 7 30
晚上八点 20 0
下午三点一刻 15 15
七点五十分 7 50
中午十二点 12 0
下午一点 13 0
三点零五 3 5
""".splitlines()


@pytest.mark.parametrize("row", TIMES)
def test_times_of_day_are_read(row: str) -> None:
    text, hour, minute = row.rsplit(" ", 2)
    assert find_time(text) == (int(hour), int(minute))


@pytest.mark.parametrize("text", ["set the volume to thirty", "99:99", "声音大一点", "for ten minutes", "三点五倍", ""])
def test_other_numbers_are_no_time(text: str) -> None:
    assert find_time(text) is None
