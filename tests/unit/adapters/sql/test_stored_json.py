"""JSON of the database is shown, whatever an earlier version kept."""

import json

import pytest

from fleet.adapters.sql.stored_json import read_stored


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"a": [NaN, Infinity, -Infinity, 1.5]}', {"a": [None, None, None, 1.5]}),
        ('{"\\ud800": "\\udc00b"}', {"?": "?b"}),
        ('"\\ud83d\\ude00"', "😀"),
        (json.dumps({"a": "\\ud800"}), {"a": "\\ud800"}),
    ],
)
def test_what_no_answer_can_hold_is_replaced(stored: str, shown: object) -> None:
    assert read_stored(stored) == shown
