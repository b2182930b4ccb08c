import json
import math
import time

import pytest
from hypothesis import given

from fleet.wire.json_text import MOST_VALUES, has_levels, has_too_many_values, is_finite, json_length
from tests.support.json_values import JSON

SMALL, LARGE = 25_000, 100_000
"""Of a pattern; four times as many may take so many times as long."""
FACTOR = 10


@pytest.mark.parametrize("opened", [",", "[", "{", '[],"'])
def test_values_are_counted_but_not_those_in_texts(opened: str) -> None:
    assert has_too_many_values(opened * (MOST_VALUES + 1))
    assert has_too_many_values((opened * (MOST_VALUES + 1)).encode())
    assert not has_too_many_values(json.dumps({"text": opened * (MOST_VALUES + 1)}))
    assert not has_too_many_values(json.dumps({"text": '\\"' + opened * (MOST_VALUES + 1)}))


@pytest.mark.parametrize("pattern", ['"', '\\"', '"\\', '",', '"a\\",', "[]"])
def test_counting_takes_no_longer_than_in_proportion(pattern: str) -> None:
    def seconds(count: int) -> float:
        frame = "," * MOST_VALUES + pattern * count
        begun = time.process_time()
        has_too_many_values(frame)
        return time.process_time() - begun

    small = max(min(seconds(SMALL) for _ in range(5)), 1e-3)
    assert min(seconds(LARGE) for _ in range(5)) < FACTOR * small


@given(JSON)
def test_whatever_json_holds_its_size_and_levels_are_told(value: object) -> None:
    assert json_length(value) == len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    assert has_levels(value, 100)
    assert has_levels([value], 0) is False
    assert not is_finite({"a": [value, math.inf]})
    if is_finite(value):
        json.dumps(value, allow_nan=False)
