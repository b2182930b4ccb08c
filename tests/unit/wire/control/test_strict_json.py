"""JSON of clients: what no program could show again is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.control.strict_json import UnfitJson, read_json

TEXT = st.text(st.characters(blacklist_categories=("Cs",)))
SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
ANY = st.recursive(SIMPLE, lambda part: st.one_of(st.lists(part), st.dictionaries(TEXT, part)), max_leaves=10)


@given(ANY, st.booleans())
def test_what_json_can_say_is_read(value: object, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert read_json(text) == read_json(text.encode()) == read_json(text.encode("utf-8-sig")) == value


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".0"])
def test_a_number_that_is_not_finite_is_refused(number: str) -> None:
    with pytest.raises(UnfitJson):
        read_json(f'{{"a": [{number}]}}')


@pytest.mark.parametrize("text", ['"\\ud800"', '{"a\\uDFFF": 1}', '[["\\uDc00\\ud800"]]', '"\\ud83d\\\\ude00"'])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(UnfitJson):
        read_json(text)


@pytest.mark.parametrize("data", [b'"\xed\xa0\x80"', b'"\xff"', "{}".encode("utf-16"), b"", b"{", b"1" * 5000])
def test_what_is_no_json_in_utf_8_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_json(data)
