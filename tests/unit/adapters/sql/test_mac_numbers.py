"""MACs as numbers."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.sql.mac_numbers import mac_number, mac_text


@given(st.integers(0, 2**48 - 1))
def test_a_number_and_its_text_belong_together(number: int) -> None:
    assert mac_number(mac_text(number)) == number
    assert len(mac_text(number)) == 17


def test_the_text_is_canonical() -> None:
    assert mac_text(mac_number("02:00:00:00:0a:ff")) == "02:00:00:00:0a:ff"
