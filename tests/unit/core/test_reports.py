import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from fleet.core.reports import LONGEST, DeviceReport, describe, write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("notifications/battery", {"level": 5, "charging": False}, 'battery {"level":5,"charging":false}'),
        ("notifications/door", None, "door"),
        ("alarm", [1], "alarm [1]"),
        ("notifications/a\nb", "好", 'a b "好"'),
    ],
)
def test_a_report_is_one_line_of_name_and_details(method: str, params: JsonValue, text: str) -> None:
    assert write(method, params) == text


@given(st.text(), JSON)
def test_no_report_is_long_or_more_than_a_line(method: str, params: JsonValue) -> None:
    text = write(method, params)
    assert len(text) <= LONGEST
    assert text.isprintable()
    text.encode()


def test_a_long_report_is_cut() -> None:
    assert write("notifications/x", "y" * 5000).endswith("y…")


def test_reports_are_told_as_data_with_their_age() -> None:
    assert describe([]) == ""
    lines = describe([DeviceReport(3599, "a"), DeviceReport(60, "b"), DeviceReport(0, "c")]).splitlines()
    assert "no instructions" in lines[0]
    assert lines[1:] == ["- 59 min ago: a", "- 1 min ago: b", "- 0 s ago: c"]
