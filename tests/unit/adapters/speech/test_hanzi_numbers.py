import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.hanzi_numbers import spell_numbers, spell_quantity


@pytest.mark.parametrize(
    ("number", "spelled"),
    [
        ("0", "零"),
        ("10", "十"),
        ("12", "十二"),
        ("20", "二十"),
        ("105", "一百零五"),
        ("110", "一百一十"),
        ("1005", "一千零五"),
        ("1010", "一千零一十"),
        ("10000", "一万"),
        ("10050", "一万零五十"),
        ("100005", "十万零五"),
        ("120000", "十二万"),
        ("100000000", "一亿"),
        ("100010001", "一亿零一万零一"),
        ("3.14", "三点一四"),
        ("0.05", "零点零五"),
        ("007", "零零七"),
    ],
)
def test_a_quantity_is_read_as_a_number(number: str, spelled: str) -> None:
    assert spell_quantity(number) == spelled


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("音量30%", "音量百分之三十"),
        ("12.5％", "百分之十二点五"),
        ("20%-30%", "百分之二十到百分之三十"),
        ("现在是7:30", "现在是七点半"),
        ("19:05", "十九点零五分"),
        ("2:00", "两点"),
        ("10:00:05", "十点零分五秒"),
        ("7:30-8:45", "七点半到八点四十五分"),
        ("2024年", "二零二四年"),
        ("2020-2024年", "二零二零到二零二四年"),
        ("2024-11-21", "二零二四年十一月二十一日"),
        ("11月2日", "十一月二日"),
        ("25.5°C", "二十五点五摄氏度"),
        ("-5℃", "零下五摄氏度"),
        ("1,000°C", "一千摄氏度"),
        ("20~25度", "二十到二十五度"),
        ("-3", "负三"),
        ("3-5天", "三到五天"),
        ("有2个", "有两个"),
        ("2小时", "两小时"),
        ("12个", "十二个"),
        ("1/2杯", "二分之一杯"),
        ("1,234,567", "一百二十三万四千五百六十七"),
        ("5km", "五公里"),
        ("100kg", "一百公斤"),
        ("¥35.5", "三十五点五元"),
        ("13800138000", "一三八零零一三八零零零"),
        ("010-12345678", "零一零一二三四五六七八"),
        ("192.168.1.1", "一九二点一六八点一点一"),
        ("2000000", "二百万"),
        ("MP3", "MP三"),
        ("没有数字", "没有数字"),
    ],
)
def test_numbers_in_a_text_are_spelled_as_they_are_read(text: str, spelled: str) -> None:
    assert spell_numbers(text) == spelled


@given(st.text(alphabet=st.sampled_from("0123456789.,:%-/°℃¥$ 年月日点个kmC好a~٣²"), max_size=30))
def test_no_text_breaks_it_and_no_digit_stays(text: str) -> None:
    assert not re.search(r"[0-9]{3}", spell_numbers(text))
