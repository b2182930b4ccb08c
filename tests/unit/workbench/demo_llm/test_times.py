from datetime import time

import pytest

from fleet.workbench.demo_llm.times import find_time
from fleet.workbench.demo_llm.units import cut, plain


@pytest.mark.parametrize(
    ("text", "hour", "minute"),
    [
        ("wake me up at seven thirty tomorrow morning", 7, 30),
        ("7:30", 7, 30),
        ("at 7 pm", 19, 0),
        ("7 p.m.", 19, 0),
        ("six o'clock", 6, 0),
        ("half past seven", 7, 30),
        ("quarter to eight", 7, 45),
        ("明天早上七点半叫我起床", 7, 30),
        ("晚上八点", 20, 0),
        ("下午三点一刻", 15, 15),
        ("七点五十分", 7, 50),
        ("中午十二点", 12, 0),
    ],
)
def test_times_of_day_are_read(text: str, hour: int, minute: int) -> None:
    assert find_time(cut(plain(text))) == time(hour, minute)


@pytest.mark.parametrize("text", ["set the volume to thirty", "99:99", "声音大一点", "for ten minutes", "三点五倍", ""])
def test_other_numbers_are_no_time(text: str) -> None:
    assert find_time(cut(plain(text))) is None
