import json
import math
import time

import pytest
from hypothesis import given

from fleet.wire.json_text import (
    MOST_VALUES,
    VALUE_BYTES,
    has_levels,
    has_too_many_values,
    is_finite,
    json_length,
    parsing_cost,
)
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
        frame = "," * (MOST_VALUES + 1) + pattern * count
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


def test_a_frame_costs_what_its_values_cost_and_not_its_bytes_alone() -> None:
    text = json.dumps({"type": "text_input", "text": "a, [b] {c} " * 10_000})
    dense = '{"if":' * 18_000 + "{}" + "}" * 18_000
    assert parsing_cost(text) < len(text) + 10 * VALUE_BYTES
    assert parsing_cost(dense) > len(dense) + 18_000 * VALUE_BYTES
    assert parsing_cost(dense.encode()) == parsing_cost(dense)


def test_a_frame_of_texts_without_end_has_too_many_values() -> None:
    assert has_too_many_values('",' * 500_000)
    assert not has_too_many_values(json.dumps({str(number): "x" for number in range(MOST_VALUES)}))
